import type { ComponentChildren } from 'preact';
import type { ListedProject } from '../../openstack/user-login.ts';
import { Document } from './layout.tsx';
import { Text } from './parts/parts.tsx';

export interface LoginWays {
  /** With a token of the configuration, or of Keystone. */
  readonly token: boolean;
  /** With the name and the password of a user of Keystone. */
  readonly password: boolean;
  /** With an identity provider, by what it is called. */
  readonly provider: string | undefined;
}

/** What somebody has sent that was not accepted, without what is secret. */
export interface Refused {
  readonly way: 'token' | 'password' | 'provider';
  readonly message: string;
  readonly username?: string;
  readonly domain?: string;
  readonly project?: string;
}

interface LoginProps {
  readonly ways: LoginWays;
  readonly refused?: Refused | undefined;
  /** The path that the login leads to. */
  readonly next: string;
}

/** The login: one form for each way. */
export function LoginPage({ ways, refused, next }: LoginProps) {
  const hasSeveral = Number(ways.token) + Number(ways.password) + Number(ways.provider !== undefined) > 1;
  const errorOf = (way: Refused['way']) => (refused?.way === way ? refused.message : undefined);
  return (
    <Document title={refused === undefined ? 'Log in' : 'Not logged in'} hasScripts={false}>
      <main class="login">
        <h1>blazar-enforcement</h1>
        {ways.provider !== undefined && (
          <Provider name={ways.provider} next={next} error={errorOf('provider')} />
        )}
        {ways.password && (
          <PasswordForm next={next} refused={refused?.way === 'password' ? refused : undefined} />
        )}
        {!ways.password && ways.provider === undefined ? (
          <TokenForm next={next} error={errorOf('token') ?? refused?.message} hasTokens={ways.token} />
        ) : (
          ways.token && (
            <details open={refused?.way === 'token' || !hasSeveral}>
              <summary>Log in with a token</summary>
              <TokenForm next={next} error={errorOf('token')} hasTokens={ways.token} />
            </details>
          )
        )}
      </main>
    </Document>
  );
}

function Problem({ id, children }: { readonly id: string; readonly children: ComponentChildren }) {
  return (
    <p class="error" role="alert" id={id}>
      <Text>{children as string}</Text>
    </p>
  );
}

/** A link, since what follows is a page of another site: a form may lead only to this one. */
function Provider({
  name,
  next,
  error,
}: {
  readonly name: string;
  readonly next: string;
  readonly error: string | undefined;
}) {
  return (
    <section>
      {error !== undefined && <Problem id="provider-error">{error}</Problem>}
      <p>
        <a class="button" href={`/login/oidc?next=${encodeURIComponent(next)}`}>
          Log in with <Text>{name}</Text>
        </a>
      </p>
    </section>
  );
}

function PasswordForm({ next, refused }: { readonly next: string; readonly refused: Refused | undefined }) {
  return (
    <form method="post" action="/login/keystone">
      {refused !== undefined && <Problem id="password-error">{refused.message}</Problem>}
      <input type="hidden" name="next" value={next} />
      <label for="username">User name</label>
      <input id="username" name="username" autocomplete="username" value={refused?.username} required />
      <label for="password">Password</label>
      <input
        id="password"
        name="password"
        type="password"
        autocomplete="current-password"
        required
        aria-describedby={refused === undefined ? undefined : 'password-error'}
        aria-invalid={refused !== undefined}
      />
      <label for="domain">Domain</label>
      <input id="domain" name="domain" value={refused?.domain ?? 'Default'} required />
      <label for="project">Project</label>
      <input id="project" name="project" value={refused?.project} aria-describedby="project-hint" />
      <p class="hint" id="project-hint">
        Its name or id. May be empty; you can switch later.
      </p>
      <button type="submit">Log in</button>
    </form>
  );
}

function TokenForm({
  next,
  error,
  hasTokens,
}: {
  readonly next: string;
  readonly error: string | undefined;
  readonly hasTokens: boolean;
}) {
  return (
    <form method="post" action="/login">
      {error !== undefined && <Problem id="login-error">{error}</Problem>}
      <input type="hidden" name="next" value={next} />
      {/* Password managers store the token under this name. */}
      <input name="username" autocomplete="username" value="policy service" readOnly hidden />
      <label for="token">Token</label>
      <input
        id="token"
        name="token"
        type="password"
        autocomplete="current-password"
        required
        aria-describedby={error === undefined ? 'login-hint' : 'login-error login-hint'}
        aria-invalid={error !== undefined}
      />
      <p class="hint" id="login-hint">
        {hasTokens
          ? 'A token of an operator or a reader, one that clients send as X-Auth-Token, or your own token of Keystone.'
          : 'Login is not possible: no tokens are configured.'}
      </p>
      <button type="submit">Log in</button>
    </form>
  );
}

/** Longer lists need the name or the id of a project. */
const MAX_SHOWN = 200;

interface SwitchProps {
  readonly projects: readonly ListedProject[];
  /** Of the project that the caller is in. */
  readonly current: string | undefined;
  readonly csrf: string;
  readonly error?: string | undefined;
}

/** The projects of a caller, each a button that leads into it. */
export function SwitchPage({ projects, current, csrf, error }: SwitchProps) {
  const shown = projects.toSorted((one, other) => (one.name < other.name ? -1 : 1)).slice(0, MAX_SHOWN);
  return (
    <Document title="Switch project" hasScripts={false}>
      <main class="login">
        <h1>Switch project</h1>
        {error !== undefined && (
          <p class="error" role="alert">
            <Text>{error}</Text>
          </p>
        )}
        <form method="post" action="/login/project">
          <input type="hidden" name="csrf" value={csrf} />
          <ul class="choices">
            {shown.map(({ id, name }) => (
              <li>
                <button
                  type="submit"
                  name="project"
                  value={id}
                  aria-current={id === current ? 'true' : undefined}
                >
                  <Text>{name}</Text> <small class="id">{<Text>{id}</Text>}</small>
                </button>
              </li>
            ))}
          </ul>
        </form>
        {projects.length > MAX_SHOWN && (
          <p class="hint">
            {projects.length - MAX_SHOWN} more are not shown. To use one of them, log out, and log in with its
            name or id.
          </p>
        )}
        <p>
          <a href="/">Back</a>
        </p>
      </main>
    </Document>
  );
}
