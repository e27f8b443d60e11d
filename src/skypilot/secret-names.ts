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
