/** The whole of standard input, of at most so many bytes. */
export async function readStandardInput(maxBytes: number): Promise<string> {
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
