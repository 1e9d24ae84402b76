/** How large the fields of a matrix are, and which one lies under a point. */

export interface MatrixLayout {
  cellWidth: number;
  cellHeight: number;
  /** Whether a number has room in a field. */
  hasNumbers: boolean;
}

export interface Field {
  row: number;
  column: number;
}

const SMALLEST = 13;
const WIDEST = 68;
const TALLEST = 34;
const NUMBER_WIDTH = 30;

/** Fill the room if the fields do not grow too small for it; else the picture scrolls. */
export function layOut(room: number, numRows: number, numColumns: number): MatrixLayout {
  const cellWidth = Math.floor(Math.min(WIDEST, Math.max(SMALLEST, room / Math.max(1, numColumns))));
  // Long sentences: rows as flat as letters allow, so that more of them are in sight.
  const cellHeight = Math.min(TALLEST, Math.max(numRows > 30 ? 14 : 18, cellWidth));
  return { cellWidth, cellHeight, hasNumbers: cellWidth >= NUMBER_WIDTH && cellHeight >= 18 };
}

export function fieldAt(x: number, y: number, layout: MatrixLayout, numRows: number, numColumns: number): Field | null {
  const [row, column] = [Math.floor(y / layout.cellHeight), Math.floor(x / layout.cellWidth)];
  return row >= 0 && column >= 0 && row < numRows && column < numColumns ? { row, column } : null;
}

/** Move by keys; null for a key that moves nothing. */
export function moveField(key: string, from: Field, numRows: number, numColumns: number): Field | null {
  const moves: Record<string, Field> = {
    ArrowLeft: { row: from.row, column: from.column - 1 },
    ArrowRight: { row: from.row, column: from.column + 1 },
    ArrowUp: { row: from.row - 1, column: from.column },
    ArrowDown: { row: from.row + 1, column: from.column },
    Home: { row: from.row, column: 0 },
    End: { row: from.row, column: numColumns - 1 },
  };
  const to = moves[key];
  if (!to) return null;
  return {
    row: Math.min(Math.max(to.row, 0), numRows - 1),
    column: Math.min(Math.max(to.column, 0), numColumns - 1),
  };
}
