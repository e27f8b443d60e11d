/** Requests to the routes of the API by their ids, and their answers by the paths of /openapi.json. */
import { API_ROUTES } from '../../../src/server/api/routes.ts';
import { type Answer, parsedAnswer } from '../../support/api-answers.ts';

export interface Call {
  /** What stands for the parts of the path. Default: `x` for each. */
  readonly params?: Readonly<Record<string, string>>;
  /** Default: none. */
  readonly query?: string | undefined;
  /** Default: `op-1-0123456789abcdef`. Empty = none is sent. */
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. Default: the example of the document. */
  readonly body?: unknown;
  /** Instead of JSON. */
  readonly text?: { readonly type: string; readonly text: string };
  /** Another method than that of the route. */
  readonly as?: string;
}

/** An answer, with what it was asked for. */
export interface RouteAnswer extends Answer {
  readonly id: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it says what it is
  readonly json: any;
}

export interface Routes {
  call(id: string, call?: Call): Promise<RouteAnswer>;
  /** The same call of every route. */
  all(call?: Call): Promise<RouteAnswer[]>;
  /** A request whose headers end with these lines, on a connection of its own. */
  bare(id: string, lines: readonly string[], rest?: string): Promise<RouteAnswer>;
}

export function routesAt({
  url,
  raw,
}: {
  readonly url: string;
  raw(bytes: string): Promise<string>;
}): Routes {
  const call = async (
    id: string,
    { params = {}, query, token = 'op-1-0123456789abcdef', ...sent }: Call = {},
  ) => {
    const route = routeOf(id);
    const { text, as, body = route.body?.example } = sent;
    const path = pathOf(route.path, params);
    const content = text?.text ?? (body === undefined ? undefined : JSON.stringify(body));
    const answer = await fetch(`${url}${path}${query === undefined ? '' : `?${query}`}`, {
      method: as ?? route.method,
      redirect: 'manual',
      headers: {
        ...(token !== '' && { 'X-Auth-Token': token }),
        ...(content !== undefined && { 'Content-Type': text?.type ?? 'application/json' }),
        ...sent.headers,
      },
      ...(content !== undefined && { body: content }),
    });
    const { status, headers } = answer;
    return answered(id, {
      method: route.method.toLowerCase(),
      path: route.path,
      status,
      headers,
      text: await answer.text(),
    });
  };
  return {
    call,
    all: (sent) => Promise.all(API_ROUTES.map(({ id }) => call(id, sent))),
    async bare(id, lines, rest = '\r\n') {
      const { method, path } = routeOf(id);
      const head = [
        `${method} ${pathOf(path, {})} HTTP/1.1`,
        'Host: x',
        'X-Auth-Token: op-1-0123456789abcdef',
        ...lines,
      ];
      const answer = await raw(`${head.join('\r\n')}\r\n${rest}`);
      if (answer === '') {
        throw new Error(`no answer came to ${JSON.stringify([id, ...lines, rest]).slice(0, 200)}`);
      }
      return answered(id, parsedAnswer(method.toLowerCase(), path, answer));
    },
  };
}

/** The example of its body that the document has. */
export function bodyOf(id: string): Readonly<Record<string, unknown>> {
  return routeOf(id).body?.example as Readonly<Record<string, unknown>>;
}

function routeOf(id: string) {
  const route = API_ROUTES.find((one) => one.id === id);
  if (route === undefined) {
    throw new Error(`there is no route ${id}`);
  }
  return route;
}

function pathOf(path: string, params: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? 'x'));
}

function answered(id: string, answer: Answer): RouteAnswer {
  const isJson = answer.headers.get('Content-Type')?.startsWith('application/json') === true;
  return { id, ...answer, json: isJson && answer.text !== '' ? JSON.parse(answer.text) : undefined };
}
