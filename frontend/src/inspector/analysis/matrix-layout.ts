/** The size of the cells of a matrix, and which cell is at a point. */

export interface MatrixLayout {
  cellWidth: number;
  cellHeight: number;
  /** Whether a number fits into a cell. */
  hasNumbers: boolean;
}

export interface Cell {
  row: number;
  column: number;
}

const MIN_SIZE = 13;
const MAX_WIDTH = 68;
const MAX_HEIGHT = 34;
const NUMBER_WIDTH = 30;

/** Fit the cells into the available width; where they would become too small, the matrix scrolls. */
export function layoutMatrix(availableWidth: number, numRows: number, numColumns: number): MatrixLayout {
  const cellWidth = Math.floor(Math.min(MAX_WIDTH, Math.max(MIN_SIZE, availableWidth / Math.max(1, numColumns))));
  // Long sentences: rows as low as the text allows, so that more of them are visible.
  const cellHeight = Math.min(MAX_HEIGHT, Math.max(numRows > 30 ? 14 : 18, cellWidth));
  return { cellWidth, cellHeight, hasNumbers: cellWidth >= NUMBER_WIDTH && cellHeight >= 18 };
}

export function cellAt(x: number, y: number, layout: MatrixLayout, numRows: number, numColumns: number): Cell | null {
  const [row, column] = [Math.floor(y / layout.cellHeight), Math.floor(x / layout.cellWidth)];
  return row >= 0 && column >= 0 && row < numRows && column < numColumns ? { row, column } : null;
}

/** The cell that a key leads to; null for a key that does not move. */
export function moveCell(key: string, from: Cell, numRows: number, numColumns: number): Cell | null {
  const moves: Record<string, Cell> = {
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
