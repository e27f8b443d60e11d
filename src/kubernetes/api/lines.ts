/** Lines of a stream, whatever its chunks. Not `node:readline`, which also ends lines where JSON has none, such as at U+2028. */
import { GrowingBuffer } from '../../growing-buffer.ts';
import { ApiUnreachableError } from './contract.ts';

const LINE_FEED = 0x0a;

/** Without line feeds; what stands after the last one comes last. @throws ApiUnreachableError for a longer line */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  maxLineBytes: number,
): AsyncGenerator<Buffer> {
  let begun = new GrowingBuffer();
  const add = (part: Uint8Array) => {
    if (begun.length + part.length > maxLineBytes) {
      throw new ApiUnreachableError(`an event of the watch is longer than ${maxLineBytes} bytes`);
    }
    begun.push(part);
  };
  const line = () => {
    const whole = begun.bytes;
    begun = new GrowingBuffer();
    return whole;
  };
  for await (const chunk of chunks) {
    let start = 0;
    // A line feed is no part of another character in UTF-8.
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, end));
      start = end + 1;
      yield line();
    }
    if (start < chunk.length) {
      add(chunk.subarray(start));
    }
  }
  yield line();
}
