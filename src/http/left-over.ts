/**
 * Whether a 204 is to be followed by a body, against RFC 9110, 15.3.5. The answer ends behind its headers all the same: what
 * comes on its connection must never be read, or the body of one answer would be the next one.
 */
export function announcesBody(headers: Readonly<Record<string, string | string[] | undefined>>): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return encoding !== undefined || Number(length) !== 0;
}

/** Whether a connection was given up since what came on it was no answer, or one that nobody had asked for. */
export function endedByStrayBytes({ name, message }: Error): boolean {
  return name === 'HTTPParserError' || message === 'bad response';
}
