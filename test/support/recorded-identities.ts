/** A server with the recorded answers of a real Keystone 22, which a test can change, hold back and stop. */
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { z } from 'zod';
import { projectFile } from './files.ts';
import { listen } from './listening.ts';

/**
 * Ids in the recording. `climate` is in the domain Default; `other` is named `climate` in the domain `other`.
 */
export const IDS = {
  climate: '7b6e544c2cc04d61b9d4776c02513d96',
  physics: '884ff550a1ff4dd09b9b34621f01b50d',
  other: '9210c3488b644355b3b4bcdd06ea2893',
  alice: '7426348dc4444989aea0196ffdd4f147',
  dave: 'e96857c098e64a19ac087fe0bd0f2c8a',
  otherDomain: 'a872c8f4c9894255833eae5a849b3842',
} as const;

const recording = z.object({
  request: z.string(),
  status: z.int(),
  contentType: z.string(),
  body: z.unknown(),
});

type Recorded = Pick<z.infer<typeof recording>, 'status' | 'contentType' | 'body'>;

const FOLDER = projectFile('test/fixtures/keystone');

/** The recording of this name. */
export function recorded(name: string): z.infer<typeof recording> {
  return recording.parse(JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8')));
}

/** A successful recorded response with some changed attributes. */
export function changedAnswer(name: string, changes: Readonly<Record<string, unknown>>): Recorded {
  const { body, ...rest } = recorded(name);
  const parsed = z.record(z.string(), z.record(z.string(), z.unknown())).parse(body);
  return {
    ...rest,
    body: Object.fromEntries(Object.entries(parsed).map(([kind, value]) => [kind, { ...value, ...changes }])),
  };
}

/** Keystone's response to an unknown request. */
function nothingFor(request: string): string {
  const kind = /\/(projects|domains)\?name=/.exec(request)?.[1];
  return kind === undefined ? 'projects-unknown' : `${kind}-list-none`;
}

export async function recordedKeystone() {
  const answers = new Map<string, Recorded>();
  for (const file of readdirSync(FOLDER)) {
    const one = recording.safeParse(JSON.parse(readFileSync(join(FOLDER, file), 'utf8'))).data;
    if (one !== undefined && /^(projects|users|domains)-/.test(file) && !file.includes('forbidden')) {
      answers.set(one.request, one);
    }
  }
  const asked: string[] = [];
  const held: (() => void)[] = [];
  let holds = false;
  const server = createServer((request, response) => {
    request.resume();
    const line = `${request.method} ${request.url}`;
    if (request.url === '/v3/auth/tokens') {
      const { status, contentType, body } = recorded('tokens-of-blazar');
      response.writeHead(status, { 'Content-Type': contentType, 'X-Subject-Token': 'harmless' });
      response.end(JSON.stringify(body));
      return;
    }
    asked.push(line);
    const { status, contentType, body } = answers.get(line) ?? recorded(nothingFor(line));
    const answer = () => {
      response.writeHead(status, { 'Content-Type': contentType });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    };
    if (holds) {
      held.push(answer);
    } else {
      answer();
    }
  });
  const { port, stop } = await listen(server);
  const url = `http://127.0.0.1:${port}/v3`;
  return {
    url,
    /** For `values` of a configuration, or as lines of a file. */
    options: {
      auth_url: url,
      username: 'blazar',
      password: 'blazar',
      project_name: 'service',
      resolve_names: true,
    },
    /** The requests without tokens: `GET /v3/projects/ID`. */
    asked,
    /** Sets the response to a request such as `GET /v3/projects/ID`. */
    answer: (request: string, answer: Recorded) => answers.set(request, answer),
    /** Delays responses until `release`. */
    hold: () => {
      holds = true;
    },
    release: () => {
      holds = false;
      for (const answer of held.splice(0)) {
        answer();
      }
    },
    stop,
  };
}
