/** What a command is given to read: a file, or standard input as `-`. */
import { readTextFile } from '../config/read-file.ts';
import { errorText } from '../errors.ts';
import { UsageError } from './output.ts';
import { readStandardInput } from './standard-input.ts';

/** Its text, of at most so many bytes. @throws UsageError */
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
