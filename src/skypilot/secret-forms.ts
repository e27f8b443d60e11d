/** Recognizes secrets in text by their form. */
import { hideUsers } from '../config/secret.ts';

export const HIDDEN = '****';

/** A reference such as `$HF_TOKEN` is not a value. */
const VALUE = `(?!["']?\\$)("[^"\\n]*"|'[^'\\n]*'|[^\\s&#;"']+)`;

/** Tokens with a known prefix, and JSON web tokens. */
const TOKENS = new RegExp(
  `\\b(?:${[
    'gh[opusr]_\\w{16,}|github_pat_\\w{16,}|gl[a-z]{2,6}-[\\w-]{16,}|hf_\\w{16,}|xox[a-z]-[\\w-]{8,}|xapp-[\\w-]{8,}',
    '(?:sk|rk|pk)[-_](?:live_|test_)?[\\w-]{16,}|(?:AKIA|ASIA|AROA|AIDA)[A-Z\\d]{12,}|AIza[\\w-]{30,}|ya29\\.[\\w.-]{16,}',
    'npm_\\w{30,}|pypi-[\\w-]{30,}|dckr_pat_[\\w-]{16,}|do[opr]_v1_\\w{30,}|SG\\.[\\w-]{16,}\\.[\\w-]{16,}|hv[sbr]\\.[\\w-]{16,}',
    'nvapi-[\\w-]{16,}|r8_\\w{30,}|gsk_\\w{30,}|tskey-[\\w-]{16,}|shp(?:at|ca|pa|ss)_\\w{16,}|AGE-SECRET-KEY-\\w{16,}',
    'eyJ[\\w-]{8,}\\.[\\w-]{8,}(?:\\.[\\w-]*)?',
  ].join('|')})`,
  'g',
);
/** Also matches if the end is cut off. */
const PEM = /-----BEGIN [A-Z\d ]{1,60}-----[\s\S]*?(?:-----END [A-Z\d ]{1,60}-----|$)/g;
/** `export HF_TOKEN=…`, `password: …`; decided by the name. */
const ASSIGNED = new RegExp(`(?<![\\w-])([A-Za-z_][\\w-]{0,199})(\\s*=\\s*|"?:\\s+)${VALUE}`, 'g');
/** `?token=…` in a URL, `--api-key …`, `Authorization: Bearer …`. */
const PARAMETER = new RegExp(`([?&](?:key|sig|signature|code|auth)=)${VALUE}`, 'gi');
const FLAG = new RegExp(`(?<![\\w-])(--([\\w-]{1,100})\\s+)${VALUE}`, 'g');
const BEARER = new RegExp(
  `(\\bbearer\\s+|\\bauthorization"?\\s*[:=]\\s*"?(?:basic|token|bearer)\\s+)${VALUE}`,
  'gi',
);

/** What each of the forms contains: most texts have none of it, and are not searched. */
const SUSPICIOUS = /[=:@?&]|--|bearer|[\w.-]{11}/i;

/** Hides everything in a text that looks like a secret. Calls `found` with each. */
export function withoutSecretForms(text: string, found: (secret: string) => void): string {
  if (!SUSPICIOUS.test(text)) {
    return text;
  }
  const hide = (secret: string) => {
    found(secret.replace(/^(["'])(.*)\1$/s, '$2'));
    return HIDDEN;
  };
  const shown = hideUsers(
    text.replace(PEM, hide).replace(/:\/\/[^\s/@]+@/g, (credentials) => {
      const [, password] = /:([^:@]+)@$/.exec(credentials.slice(3)) ?? [];
      found(password ?? credentials.slice(3, -1));
      return credentials;
    }),
  );
  return shown
    .replace(TOKENS, hide)
    .replace(PARAMETER, (_, before: string, value: string) => before + hide(value))
    .replace(BEARER, (_, before: string, value: string) => before + hide(value))
    .replace(FLAG, (all, before: string, name: string, value: string) =>
      isSecretMember(name) ? before + hide(value) : all,
    )
    .replace(ASSIGNED, (all, name: string, between: string, value: string) => {
      const isSecret = /^[A-Z_\d]+$/.test(name) ? isSecretVariable(name) : isSecretMember(name);
      return isSecret ? name + between + hide(value) : all;
    });
}

/** Recognizes secrets by name. Hiding too much is better than too little: the user can look up the value in its file. */
const WORDS =
  'token|password|passwd|passphrase|pwd|pass|secret|credential|cred|pat|jwt|dsn|(?:api|access|private|signing|encryption|ssh|account)[_-]?key|connection[_-]?string';
/** `HF_TOKEN`, `apiKey`, `db-password`, `PGPASSWORD`; `db` is a database URL. */
const MEMBER = new RegExp(`^db$|(?:^|[_-])(?:${WORDS})s?$|(?:password|passwd|passphrase)$`, 'i');

/** Words that make a variable secret, anywhere in its name: `SSH_KEY_B64`, `GITHUB_PAT`, `SESSION_COOKIE`. */
const WORD =
  /^(?:keys?|pats?|jwts?|auth|creds?|cookies?|sessions?|bearer|private|dsn|pwd|pw|salt|signature|sig|webhook|cert|otp|pin)$/;
/** Parts of a word that make a variable secret: `PGPASSFILE`, `DBPASS`, `APIKEY`. */
const PART = /pass|secret|token(?!iz)|credential|apikey/;

function words(name: string): string[] {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/);
}

/**
 * Whether a member of a task or configuration is secret, such as `service_account_token`. Names of Kubernetes Secrets
 * are not.
 */
export function isSecretMember(name: string): boolean {
  return MEMBER.test(name.slice(-100).replace(/([a-z\d])([A-Z])/g, '$1_$2'));
}

/** Whether an environment variable is secret. Stricter: all of `AWS_…`, and every name with a key in it. */
export function isSecretVariable(name: string): boolean {
  const bounded = name.slice(0, 500);
  return (
    /^aws_/i.test(bounded) ||
    isSecretMember(name) ||
    words(bounded).some((word) => WORD.test(word) || PART.test(word))
  );
}
