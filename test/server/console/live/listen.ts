/** A page that listens at `/events`, as a browser does. */
import { onTestFinished } from 'vitest';

/** What comes, until it ends. */
export async function listen(url: string, headers: Record<string, string> = {}) {
  const leave = new AbortController();
  onTestFinished(() => leave.abort());
  const answer = await fetch(`${url}/events`, { headers, signal: leave.signal });
  let heard = '';
  const ended = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of answer.body ?? []) {
      heard += decoder.decode(chunk);
    }
  })();
  ended.catch(() => {});
  const events = () => [...heard.matchAll(/^event: (.*)$/gm)].map(([, name]) => name);
  const heartbeats = () => heard.split('\n: ').length - 1;
  return {
    status: answer.status,
    headers: answer.headers,
    events,
    heartbeats,
    ended,
    leave: () => leave.abort(),
  };
}
