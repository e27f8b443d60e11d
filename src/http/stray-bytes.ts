/**
 * Whether a 204 announces a body, against RFC 9110, 15.3.5. The answer still ends after its headers: what follows on the connection
 * must never be read, or the body of this answer would be taken for the next answer.
 */
export function announcesBody(headers: Readonly<Record<string, string | string[] | undefined>>): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return encoding !== undefined || Number(length) !== 0;
}

/** Whether a connection was closed because of bytes that were not an answer, or an answer without a request. */
export function endedByStrayBytes({ name, message }: Error): boolean {
  return name === 'HTTPParserError' || message === 'bad response';
}
