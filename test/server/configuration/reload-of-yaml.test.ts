/** A configuration in YAML that is read again: a mistake, or a file cut off, leaves the last good one deciding. */
import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { temporaryFile } from '../../support/files.ts';
import { createLasting } from '../../support/requests.ts';
import { runServiceOn } from '../../support/running-service.ts';

const yaml = (limit: number | string) =>
  `enforcement:\n  enabled_filters: [MaxLeaseDurationFilter]\n  max_lease_duration: ${limit}\nservice:\n  port: 0\n`;
const HOUR = JSON.stringify(createLasting(3600));

async function onFile() {
  const conf = temporaryFile('blazar.yaml', yaml(3600));
  const running = await runServiceOn({ environment: {}, configFiles: [conf] });
  const status = async (path: string, body: unknown) => (await running.post(path, body)).status;
  return {
    ...running,
    conf,
    change: (text: string) => {
      writeFileSync(conf, text);
      return running.service.reload();
    },
    allowed: async () => (await status('/check-create', HOUR)) === 204,
  };
}

describe('a reload of YAML', () => {
  it.each([
    ['no YAML', yaml('{'), /blazar\.yaml:\d+: expected YAML: /],
    ['of another shape', '- enforcement', /blazar\.yaml:1: expected sections/],
    ['empty', '', /blazar\.yaml: the file became empty; restart to accept it/],
    ['sections without options', 'enforcement:\nservice: {}\n', /the file became empty/],
  ])('that is %s is refused, and the last good configuration stays', async (_, text, problem) => {
    const { change, allowed, request, logger } = await onFile();
    expect(await change(text)).toBe(false);
    expect(await allowed()).toBe(true);
    expect((await request('/readyz')).status).toBe(503);
    expect(logger.lines.some(({ message }) => problem.test(message))).toBe(true);
    expect(await change(yaml(3599))).toBe(true);
    expect(await allowed()).toBe(false);
  });
});
