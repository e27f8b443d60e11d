/** A Keystone with recorded responses about tokens: `test/fixtures/keystone-tokens`. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Clock } from '../../src/filter/services.ts';
import { projectFile } from './files.ts';

/** A recorded token: its user, and its kind. */
type Recorded = 'service' | 'other-service' | 'member' | 'reader' | 'unscoped' | 'of-system' | 'of-domain';
type Recording = Recorded | 'issued' | 'unknown' | 'forbidden' | 'unauthorized';

interface RecordedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Writes another response to a token request. An empty function never responds. */
type Instead = (response: ServerResponse, recorded: RecordedAnswer) => void;

const OWN_TOKEN = 'gAAAAABour-own';
const recordings = new Map<Recording, RecordedAnswer>();

export class ValidatingKeystone {
  /** Known tokens. */
  readonly tokens = new Map<string, Recorded>();
  /** The tokens of validation requests, in order. */
  readonly asked: string[] = [];
  /** Replaces recorded responses to token requests. */
  instead: Instead | undefined;
  /** The validity of its tokens from the request on, in seconds. */
  lifetimeSeconds = 3600;
  readonly #clock: Clock;
  readonly #held = new Set<() => void>();
  #server: Server;
  #port = 0;

  private constructor(clock: Clock) {
    this.#clock = clock;
    this.#server = this.#create();
  }

  static async start(clock: Clock = { now: () => new Date() }): Promise<ValidatingKeystone> {
    const keystone = new ValidatingKeystone(clock);
    await keystone.restart();
    onTestFinished(() => keystone.stop());
    return keystone;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/v3`;
  }

  /** For `[keystone]`. */
  get account() {
    return { auth_url: this.url, username: 'blazar', password: 'blazar', project_name: 'service' };
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    if (this.#server.listening) {
      this.#server.close();
      await once(this.#server, 'close');
    }
  }

  /** At the same address. */
  async restart(): Promise<void> {
    this.#server = this.#create();
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Delays responses about tokens until the returned function is called. */
  hold(): () => void {
    const held = new Set<() => void>();
    this.instead = (response, recorded) => held.add(() => send(response, recorded));
    return () => {
      this.instead = undefined;
      for (const answer of held) {
        answer();
      }
    };
  }

  /** Resolves after this number of requests. */
  async untilAsked(times: number): Promise<void> {
    while (this.asked.length < times) {
      await new Promise<void>((resolve) => this.#held.add(resolve));
    }
  }

  #create(): Server {
    return createServer((request, response) => this.#answer(request, response));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    request.resume();
    response.sendDate = false;
    response.setHeader('Date', this.#clock.now().toUTCString());
    if (request.method === 'POST') {
      response.setHeader('X-Subject-Token', OWN_TOKEN);
      send(response, this.#recorded('issued'));
      return;
    }
    if (request.headers['x-auth-token'] !== OWN_TOKEN) {
      send(response, this.#recorded('unauthorized'));
      return;
    }
    const token = String(request.headers['x-subject-token']);
    this.asked.push(token);
    const recorded = this.#recorded(this.tokens.get(token) ?? 'unknown');
    if (recorded.status === 200) {
      response.setHeader('X-Subject-Token', token);
    }
    (this.instead ?? send)(response, recorded);
    for (const resolve of this.#held) {
      this.#held.delete(resolve);
      resolve();
    }
  }

  /** With times that begin now. */
  #recorded(name: Recording): RecordedAnswer {
    let answer = recordings.get(name);
    if (answer === undefined) {
      const file = projectFile(`test/fixtures/keystone-tokens/${name}.json`);
      answer = JSON.parse(readFileSync(file, 'utf8')) as RecordedAnswer;
      recordings.set(name, answer);
    }
    const now = this.#clock.now().getTime();
    const lifetime = name === 'issued' ? 3600 : this.lifetimeSeconds;
    const text = JSON.stringify(answer.body)
      .replace(/"issued_at":"[^"]*"/, `"issued_at":"${inKeystonesForm(now)}"`)
      .replace(/"expires_at":"[^"]*"/, `"expires_at":"${inKeystonesForm(now + lifetime * 1000)}"`);
    return { ...answer, body: JSON.parse(text) };
  }
}

function send(response: ServerResponse, { status, headers, body }: RecordedAnswer): void {
  response.writeHead(status, headers).end(JSON.stringify(body));
}

function inKeystonesForm(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace(/\.\d{3}Z$/, '.000000Z');
}
