/** Reads server-sent events from the body of a response. */

import { type EventSourceMessage, EventSourceParserStream } from "eventsource-parser/stream";

export async function* serverEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<EventSourceMessage> {
  const decoder = new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>;
  const reader = body.pipeThrough(decoder).pipeThrough(new EventSourceParserStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    // Close the connection when the consumer stops early.
    void reader.cancel().catch(() => undefined);
  }
}
