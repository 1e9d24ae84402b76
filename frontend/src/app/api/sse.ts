/** Server-sent events out of the body of an answer. */

export interface ServerEvent {
  event: string;
  data: string;
}

/** Cut a stream of text into events; what is not whole yet waits for the rest. */
export class EventCutter {
  #rest = "";

  push(text: string): ServerEvent[] {
    const all = this.#rest + text;
    // The other half of a line's end may still be under way.
    const held = all.endsWith("\r") ? "\r" : "";
    const blocks = all.slice(0, all.length - held.length).replace(/\r\n?/g, "\n").split("\n\n");
    this.#rest = blocks.pop()! + held;
    return blocks.map(readBlock).filter((one) => one !== null);
  }
}

function readBlock(block: string): ServerEvent | null {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const [, name, value] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (name === "event") event = value;
    if (name === "data") data.push(value);
  }
  return data.length ? { event, data: data.join("\n") } : null;
}

export async function* serverEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const cutter = new EventCutter();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      yield* cutter.push(done ? `${decoder.decode()}\n\n` : decoder.decode(value, { stream: true }));
      if (done) return;
    }
  } finally {
    // Whoever stops listening lets the connection go too.
    void reader.cancel().catch(() => undefined);
  }
}
