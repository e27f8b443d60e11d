/** What a browser does with the page, without one: it fetches, sends forms, and keeps a cookie. */
import { confFile } from '../../support/files.ts';
import { runServiceOn } from '../../support/running-service.ts';

export interface Visit {
  readonly status: number;
  readonly headers: Headers;
  readonly html: string;
  /** What is read: no tags, and no more than one space in a row. */
  readonly text: string;
}

export interface Visitor {
  get(path?: string, headers?: Record<string, string>): Promise<Visit>;
  /** Sends a form: its fields, or its text as it is. */
  send(
    path: string,
    fields: Record<string, string> | string,
    headers?: Record<string, string>,
  ): Promise<Visit>;
  request(path: string, init: RequestInit): Promise<Visit>;
  /** `name=value` of the cookie that came last; empty when it was taken back. */
  cookie(): string;
}

export function visitor(url: string): Visitor {
  let cookie = '';
  const request = async (path: string, init: RequestInit): Promise<Visit> => {
    const answer = await fetch(url + path, {
      redirect: 'manual',
      ...init,
      headers: { ...(cookie !== '' && { Cookie: cookie }), ...(init.headers as Record<string, string>) },
    });
    for (const set of answer.headers.getSetCookie()) {
      const [pair = ''] = set.split(';');
      cookie = pair.endsWith('=') ? '' : pair;
    }
    const html = await answer.text();
    return { status: answer.status, headers: answer.headers, html, text: textOf(html) };
  };
  return {
    get: (path = '/', headers = {}) => request(path, { headers }),
    send: (path, fields, headers = {}) =>
      request(path, {
        method: 'POST',
        body: typeof fields === 'string' ? fields : String(new URLSearchParams(fields)),
        headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
      }),
    request,
    cookie: () => cookie,
  };
}

/** The texts between the tags. */
export function textOf(html: string): string {
  return unescaped(
    html
      .replace(/<style>[^<]*<\/style>/, '')
      .replace(/<\/?(b|bdi|span|time)\b[^>]*>/g, '')
      .replace(/<[^>]*>/g, ' ')
      .replace(/\s+/g, ' '),
  );
}

/** The cells of each row of the table with this label. */
export function rowsOf(html: string, label: string): string[][] {
  const [, table = ''] = html.split(`aria-label="${label}"`);
  return [...(table.split('</table>')[0] ?? '').matchAll(/<tr[^>]*>(.*?)<\/tr>/gs)]
    .slice(1)
    .map(([, row = '']) =>
      [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/gs)].map(([, cell = '']) => textOf(cell).trim()),
    );
}

/** The fields of the first suggestion for a lease or a change. */
export function suggestedIn(html: string): Record<string, string> {
  const [form = ''] = html.match(/<li>(?:(?!<\/li>).)*Fill in suggestion 1.*?<\/li>/s) ?? [];
  const fields = form.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g);
  return Object.fromEntries([...fields].map(([, name = '', value = '']) => [name, value]));
}

function unescaped(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&quot;', '"').replaceAll('&amp;', '&');
}

/** The page of a service with this configuration file; any free port, and its logger. */
export async function visitService(conf: string) {
  const file = confFile(conf);
  const config = [{ section: 'service', option: 'port', value: '0', flag: '--port' }];
  const { url, service, logger } = await runServiceOn({ environment: {}, configFiles: [file], config });
  return { url, reload: () => service.reload(), ...visitor(url), file, logger };
}
