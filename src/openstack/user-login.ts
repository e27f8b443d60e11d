/** Keystone calls with users' own passwords and tokens, never with our account. */
import { z } from 'zod';
import { jsonIn } from '../base/yaml/tree.ts';
import type { SharedServices } from '../filter/services.ts';
import type { HttpAnswer, HttpCallOptions, HttpClient } from '../http/contract.ts';
import { unusableAnswer } from './contract.ts';
import { clientOptions, effectiveOptions, identityUrl, TOKENS_PATH } from './effective-options.ts';
import type { KeystoneOptions } from './keystone-options.ts';
import { tokenIn, unusable } from './own-token.ts';

export interface UserPassword {
  readonly name: string;
  /** The name of the domain. */
  readonly domain: string;
  readonly password: string;
}

/**
 * - `wrong`: user, password or domain; or the account is disabled or locked, which Keystone does not always
 *   distinguish
 * - `expired`: the password must be changed first
 * - `second-factor`: the password is right, and Keystone requires more
 */
export type LoginRefusal = 'wrong' | 'expired' | 'second-factor';

export type UserScope = { readonly projectId: string } | 'system';

/** For a list of projects: some 3000. */
const MAX_ANSWER_BYTES = 1_048_576;

type Signal = Pick<HttpCallOptions, 'signal'>;

interface Opened {
  readonly url: string;
  readonly client: HttpClient;
}

/**
 * Calls are bounded in time and size. They throw `KeystoneError`, `HttpCallError`, or a signal's reason,
 * never with a secret.
 */
export class UserLogin {
  readonly #options: KeystoneOptions;
  readonly #services: Pick<SharedServices, 'http'>;
  #opened: Promise<Opened> | undefined;

  /** Opens and sends nothing before its first use. */
  constructor(options: KeystoneOptions, services: Pick<SharedServices, 'http'>) {
    this.#options = options;
    this.#services = services;
  }

  /** An unscoped token of the user, or the reason for the refusal. */
  async logIn(
    { name, domain, password }: UserPassword,
    call: Signal = {},
  ): Promise<{ readonly token: string } | { readonly refusal: LoginRefusal }> {
    const user = { name, domain: { name: domain }, password };
    const identity = { methods: ['password'], password: { user } };
    const answer = await this.#issue({ identity, scope: 'unscoped' }, call);
    if (answer.status === 401) {
      if (answer.headers?.['openstack-auth-receipt'] !== undefined) {
        return { refusal: 'second-factor' };
      }
      return { refusal: /password is expired/i.test(messageOf(answer)) ? 'expired' : 'wrong' };
    }
    // A name, domain or password in a form that Keystone refuses.
    return answer.status === 400 ? { refusal: 'wrong' } : { token: await this.#tokenOf(answer) };
  }

  /** The same user's token for a project or the system; `undefined` = no role there, or no valid token. */
  async scoped(token: string, scope: UserScope, call: Signal = {}): Promise<string | undefined> {
    const identity = { methods: ['token'], token: { id: token } };
    const scoped = scope === 'system' ? { system: { all: true } } : { project: { id: scope.projectId } };
    const answer = await this.#issue({ identity, scope: scoped }, call);
    return [400, 401, 403, 404].includes(answer.status) ? undefined : this.#tokenOf(answer);
  }

  /** The enabled projects in which the token's user has any role; `undefined` = the token is no longer valid. */
  async projects(token: string, { signal }: Signal = {}): Promise<readonly ListedProject[] | undefined> {
    const { url, client } = await this.#open();
    const address = `${url}/auth/projects`;
    const answer = await client.get(address, { signal, headers: { 'x-auth-token': token } });
    if (answer.status === 401) {
      return undefined;
    }
    if (answer.status !== 200) {
      throw unusable(answer, `GET ${address}`);
    }
    const parsed = projectsAnswer.safeParse(jsonIn(answer.body));
    if (!parsed.success) {
      throw unusableAnswer(`GET ${address}: the answer is no list of projects`);
    }
    return parsed.data.projects;
  }

  /** Whether the token's user has any role in the system. */
  async hasSystemRole(token: string, { signal }: Signal = {}): Promise<boolean> {
    const { url, client } = await this.#open();
    const answer = await client.get(`${url}/auth/system`, { signal, headers: { 'x-auth-token': token } });
    return answer.status === 200 && systemAnswer.safeParse(jsonIn(answer.body)).success;
  }

  async close(): Promise<void> {
    const opened = await this.#opened?.catch(() => undefined);
    await opened?.client.close();
  }

  async #issue(auth: object, { signal }: Signal): Promise<HttpAnswer> {
    const { url, client } = await this.#open();
    return client.postJson(`${url}${TOKENS_PATH}?nocatalog`, JSON.stringify({ auth }), {
      signal,
      answerHeaders: ['x-subject-token', 'openstack-auth-receipt'],
    });
  }

  async #tokenOf(answer: HttpAnswer): Promise<string> {
    const called = `POST ${(await this.#open()).url}${TOKENS_PATH}`;
    if (answer.status !== 201 && answer.status !== 200) {
      throw unusable(answer, called);
    }
    return tokenIn(answer, called);
  }

  #open(): Promise<Opened> {
    this.#opened ??= this.#openClient().catch((thrown: unknown) => {
      this.#opened = undefined;
      throw thrown;
    });
    return this.#opened;
  }

  async #openClient(): Promise<Opened> {
    const { options } = await effectiveOptions(this.#options);
    const settings = { ...clientOptions(options), maxAnswerBytes: MAX_ANSWER_BYTES };
    const client = this.#services.http.createClient(settings);
    return { url: identityUrl(options.auth_url ?? ''), client };
  }
}

const listedProject = z.object({ id: z.string().min(1).max(255), name: z.string().max(1020) });
const projectsAnswer = z.object({ projects: z.array(listedProject).max(10_000) });
const systemAnswer = z.object({ system: z.array(z.object({ all: z.literal(true) })).min(1) });
export type ListedProject = z.infer<typeof listedProject>;

function messageOf({ body }: HttpAnswer): string {
  const answer = z.object({ error: z.object({ message: z.string() }) });
  return answer.safeParse(jsonIn(body)).data?.error.message ?? '';
}
