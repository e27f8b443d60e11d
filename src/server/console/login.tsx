import type { ComponentChildren } from 'preact';
import type { ListedProject } from '../../openstack/user-login.ts';
import { Document } from './layout.tsx';
import { ChangeForm } from './parts/fields.tsx';
import { Text } from './parts/parts.tsx';

export interface LoginWays {
  /** With a token of the configuration, or of Keystone. */
  readonly token: boolean;
  /** With name and password of a Keystone user. */
  readonly password: boolean;
  /** The title of the identity provider; `undefined` = no login by a provider. */
  readonly provider: string | undefined;
}

/** A rejected login, without secrets. */
export interface Refused {
  /** `undefined` = a form of a session that has ended. */
  readonly way: 'token' | 'password' | 'provider' | undefined;
  readonly message: string;
  readonly username?: string;
  readonly domain?: string;
  readonly project?: string;
}

interface LoginProps {
  readonly ways: LoginWays;
  readonly refused?: Refused | undefined;
  /** The path after the login. */
  readonly next: string;
}

interface FramedProps {
  readonly title: string;
  /** Default: the name of the product. */
  readonly heading?: string;
  /** Default: false. */
  readonly hasScripts?: boolean;
  readonly children: ComponentChildren;
}

/** A page without a session, such as login and logout. */
function Framed({ title, heading = 'blazar-enforcement', hasScripts = false, children }: FramedProps) {
  return (
    <Document title={title} hasScripts={hasScripts}>
      <main class="login">
        <h1>{heading}</h1>
        {children}
      </main>
    </Document>
  );
}

export function LoginPage({ ways, refused, next }: LoginProps) {
  const { token, password, provider } = ways;
  const ofWay = (way: Refused['way']) => (refused?.way === way ? refused : undefined);
  const isOnPage = { token: true, password, provider: provider !== undefined };
  const ofNoWay = refused?.way === undefined || !isOnPage[refused.way] ? refused : undefined;
  const tokenForm = <TokenForm next={next} error={ofWay('token')?.message} hasTokens={token} />;
  return (
    <Framed title={refused === undefined ? 'Log in' : 'Not logged in'}>
      <Problem id="session-error" text={ofNoWay?.message} />
      {provider !== undefined && (
        <section>
          <Problem id="provider-error" text={ofWay('provider')?.message} />
          <p>
            {/* A link, since it leads to another site: forms may be sent only to this one. */}
            <a class="button" href={`/login/oidc?next=${encodeURIComponent(next)}`}>
              Log in with <Text>{provider}</Text>
            </a>
          </p>
        </section>
      )}
      {password && <PasswordForm next={next} refused={ofWay('password')} />}
      {!password && provider === undefined
        ? tokenForm
        : token && (
            <details open={refused?.way === 'token'}>
              <summary>Log in with a token</summary>
              {tokenForm}
            </details>
          )}
    </Framed>
  );
}

function Problem({ id, text }: { readonly id: string; readonly text: string | undefined }) {
  return text === undefined ? null : (
    <p class="error" role="alert" id={id}>
      <Text>{text}</Text>
    </p>
  );
}

const SECRET = { type: 'password', autocomplete: 'current-password', required: true } as const;

function PasswordForm({ next, refused }: { readonly next: string; readonly refused: Refused | undefined }) {
  return (
    <form method="post" action="/login/keystone">
      <Problem id="password-error" text={refused?.message} />
      <input type="hidden" name="next" value={next} />
      <label for="username">User name</label>
      <input id="username" name="username" autocomplete="username" value={refused?.username} required />
      <label for="password">Password</label>
      <input
        {...SECRET}
        id="password"
        name="password"
        aria-describedby={refused && 'password-error'}
        aria-invalid={refused !== undefined}
      />
      <label for="domain">Domain</label>
      <input id="domain" name="domain" value={refused?.domain ?? 'Default'} required />
      <label for="project">Project</label>
      <input id="project" name="project" value={refused?.project} aria-describedby="project-hint" />
      <p class="hint" id="project-hint">
        Its name or id. Optional: you can switch later.
      </p>
      <button type="submit">Log in</button>
    </form>
  );
}

interface TokenFormProps {
  readonly next: string;
  readonly error: string | undefined;
  readonly hasTokens: boolean;
}

function TokenForm({ next, error, hasTokens }: TokenFormProps) {
  return (
    <form method="post" action="/login">
      <Problem id="login-error" text={error} />
      <input type="hidden" name="next" value={next} />
      {/* Password managers store the token under this name. */}
      <input name="username" autocomplete="username" value="policy service" readOnly hidden />
      <label for="token">Token</label>
      <input
        {...SECRET}
        id="token"
        name="token"
        aria-describedby={error === undefined ? 'login-hint' : 'login-error login-hint'}
        aria-invalid={error !== undefined}
      />
      <p class="hint" id="login-hint">
        {hasTokens
          ? 'A token of an operator or a reader, one that clients send as X-Auth-Token, or your own Keystone token.'
          : 'Login is not possible: no tokens are configured.'}
      </p>
      <button type="submit">Log in</button>
    </form>
  );
}

/** Maximum number of projects shown; in longer lists, users enter a name or an id. */
const MAX_SHOWN = 200;

interface SwitchProps {
  readonly projects: readonly ListedProject[];
  /** What the form sends for the system; `undefined` = the caller has no role in it. */
  readonly system?: string | undefined;
  readonly current: string | undefined;
  readonly csrf: string;
  readonly error?: string | undefined;
}

/** The projects of a caller, each with a button that switches to it. */
export function SwitchPage({ projects, system, current, csrf, error }: SwitchProps) {
  const shown = projects.toSorted((one, other) => (one.name < other.name ? -1 : 1)).slice(0, MAX_SHOWN);
  return (
    <Framed title="Switch project" heading="Switch project">
      <Problem id="switch-error" text={error} />
      <ChangeForm action="/login/project" csrf={csrf}>
        <ul class="choices">
          {system !== undefined && (
            <li>
              <button type="submit" class="plain" name="project" value={system}>
                The system <small>all projects</small>
              </button>
            </li>
          )}
          {shown.map(({ id, name }) => (
            <li>
              <button
                type="submit"
                class="plain"
                name="project"
                value={id}
                aria-current={id === current ? 'true' : undefined}
              >
                <Text>{name}</Text> <small class="id">{<Text>{id}</Text>}</small>
              </button>
            </li>
          ))}
        </ul>
      </ChangeForm>
      {projects.length > MAX_SHOWN && (
        <p class="hint">
          {projects.length - MAX_SHOWN} more are not shown. To use one of them, log out, and log in with its
          name or id.
        </p>
      )}
      <p>
        <a href="/">Back</a>
      </p>
    </Framed>
  );
}

export function LoggedInPage({ next }: { readonly next: string }) {
  return (
    <Framed title="Logged in" hasScripts>
      <p>
        You are logged in. <a href={next}>Continue</a>
      </p>
    </Framed>
  );
}

/** After the logout: the session at the issuer stays until the user ends it there. */
export function LoggedOutPage({ title, url }: { readonly title: string; readonly url: string }) {
  return (
    <Framed title="Logged out" hasScripts>
      <p>You are logged out here, but still logged in at {title}.</p>
      <p>
        <a href={url}>Log out there, too</a>
      </p>
      <p>
        <a href="/">Log in again</a>
      </p>
    </Framed>
  );
}
