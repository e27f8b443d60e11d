/** The input of a command: a file, or `-` for standard input. */
import { readTextFile } from '../config/read-file.ts';
import { errorText } from '../errors.ts';
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
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) {
      throw new Error(`it is longer than ${maxBytes} bytes`);
    }
    chunks.push(chunk);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks));
  } catch {
    throw new Error('it is not UTF-8 text');
  }
}
