/** The input of a command: a file, or `-` for standard input. */

import { errorText } from '../base/errors.ts';
import { GrowingBuffer } from '../base/growing-buffer.ts';
import { readTextFile } from '../config/read-file.ts';
import { UsageError } from './output.ts';

/** The text of the input, of at most `maxBytes`. @throws UsageError */
export async function readText(file: string, maxBytes: number): Promise<string> {
  try {
    return await (file === '-' ? readStandardInput(maxBytes) : readTextFile(file, maxBytes));
  } catch (thrown) {
    throw new UsageError(`${shownName(file)}: could not be read: ${errorText(thrown)}`);
  }
}

export function shownName(file: string): string {
  return file === '-' ? 'standard input' : file;
}

async function readStandardInput(maxBytes: number): Promise<string> {
  const input = new GrowingBuffer();
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    if (input.length + chunk.length > maxBytes) {
      throw new Error(`it is longer than ${maxBytes} bytes`);
    }
    input.push(chunk);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(input.bytes);
  } catch {
    throw new Error('it is not UTF-8 text');
  }
}
