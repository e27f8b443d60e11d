/** Whether a name is that of a secret. Better a hidden value too many: what is hidden by mistake can be looked up where it is written. */

const WORDS =
  'token|password|passwd|passphrase|pwd|pass|secret|credential|cred|pat|jwt|dsn|(?:api|access|private|signing|encryption|ssh|account)[_-]?key|connection[_-]?string';
/** `HF_TOKEN`, `apiKey`, `db-password`, `PGPASSWORD`; `db` is the whole address of a database. */
const MEMBER = new RegExp(`^db$|(?:^|[_-])(?:${WORDS})s?$|(?:password|passwd|passphrase)$`, 'i');

/** A word of a variable that is enough, wherever it stands: `SSH_KEY_B64`, `GITHUB_PAT`, `SESSION_COOKIE`. */
const WORD =
  /^(?:keys?|pats?|jwts?|auth|creds?|cookies?|sessions?|bearer|private|dsn|pwd|pw|salt|signature|sig|webhook|cert|otp|pin)$/;
/** A part of a word that is enough: `PGPASSFILE`, `DBPASS`, `APIKEY`. */
const PART = /pass|secret|token(?!iz)|credential|apikey/;

function words(name: string): string[] {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/);
}

/** Of a member of a task or a configuration, such as `service_account_token`. The names of secrets of a cluster are none. */
export function isSecretMember(name: string): boolean {
  return MEMBER.test(name.slice(-100).replace(/([a-z\d])([A-Z])/g, '$1_$2'));
}

/** Of an environment variable, of which more are secrets: all of `AWS_…`, whatever has a key in its name. */
export function isSecretVariable(name: string): boolean {
  const bounded = name.slice(0, 500);
  return (
    /^aws_/i.test(bounded) ||
    isSecretMember(name) ||
    words(bounded).some((word) => WORD.test(word) || PART.test(word))
  );
}
