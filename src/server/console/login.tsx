import { Document } from './document.tsx';

interface LoginProps {
  readonly error?: string | undefined;
  /** Whether there is a token with which somebody can log in. */
  readonly hasTokens: boolean;
  /** The path that the login leads to. */
  readonly next: string;
}

/** The login form. */
export function LoginPage({ error, hasTokens, next }: LoginProps) {
  return (
    <Document title={error === undefined ? 'Log in' : 'Not logged in'}>
      <main class="login">
        <h1>Policy service</h1>
        <form method="post" action="/login">
          {error !== undefined && (
            <p class="error" role="alert" id="login-error">
              {error}
            </p>
          )}
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
              ? 'One of the tokens of [service], the same that clients send as X-Auth-Token.'
              : 'Nobody can log in: [service] has no tokens, and tokens of Keystone do not open this page.'}
          </p>
          <button type="submit">Log in</button>
        </form>
      </main>
    </Document>
  );
}
