/** Says aloud which proofs have needed a second try, and why: they pass, and are worth a look. */
import { afterEach } from 'vitest';

afterEach(({ task: { name, file, result } }) => {
  if ((result?.retryCount ?? 0) > 0) {
    const [error] = result?.errors ?? [];
    process.stderr.write(
      `second try of "${name}" (${file.name}): ${error?.message ?? 'no error is known'}\n`,
    );
  }
});
