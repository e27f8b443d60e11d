/** `serve` from its start to its end, as an operator runs it, asked with what a real Blazar has sent. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { confFile, projectFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { capturedText } from '../support/requests.ts';
import { serve } from './serving.ts';

const HAS_CURL = spawnSync('curl', ['--version']).status === 0;

/** The lines from `curl` to the next empty one, as somebody would mark and paste them. */
function pasted(stdout: string): string {
  return /^ *curl [\s\S]*?(?=\n\n)/m.exec(stdout)?.[0] ?? '';
}

function runInShell(line: string): string {
  return spawnSync('sh', ['-c', line], { encoding: 'utf8', timeout: 600_000 }).stdout;
}

describe('serve', () => {
  it('answers a real Blazar with what npm start runs, and ends with 0 at SIGTERM', async () => {
    const { scripts } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8'));
    const [node, main, command, ...args] = (scripts.start as string).split(' ');
    expect([node, main, command]).toEqual(['node', 'dist/src/cli/main.js', 'serve']);
    expect(args).toEqual(['--config-file', 'etc/policy-service.conf']);
    const { post, url, output, process, ended } = await serve([...args, '--port', '0'], {
      cwd: projectFile('.'),
    });
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect((await post('/check-create', capturedText('check-create-physical-host.json'))).status).toBe(204);
    const rejected = await post('/v1/check-create', capturedText('check-create-gpu-and-floating-ip.json'));
    expect(rejected.status).toBe(403);
    expect(await rejected.json()).toEqual({ message: expect.stringContaining('777600 seconds (9 days)') });
    expect((await post('/check-update', capturedText('check-update-extend.json'))).status).toBe(403);
    expect((await post('/on-end', capturedText('on-end-active.json'))).status).toBe(204);
    if (HAS_CURL) {
      const line = pasted(output().stdout);
      expect(line).toContain(`${url}/check-create`);
      expect(runInShell(line)).toMatch(
        /^HTTP\/1\.1 403 [\s\S]*\{"message":"The lease is 864000 seconds \(10 days\) long;/,
      );
    }
    process.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });

  it('shows what each protocol asks for, and a curl line with room for a token, but never a token', async () => {
    const conf = confFile(
      `[service]\nport = 0\n[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 172800\n[skypilot]\nadmin_policies = DisablePublicIpPolicy\n[kubernetes]\nscheduling_policies = ${projectFile('etc/kubernetes/policies.yaml')}\ntokens = n3xt-0123456789abcdef\n`,
    );
    const { output, url } = await serve(['--config-file', conf], {
      env: { OS_SERVICE__TOKENS: 's3cret-0123456789abcdef,0ther-0123456789abcdef' },
    });
    const { stdout } = output();
    expect(stdout).toContain(
      [
        `Listening on ${url}`,
        '',
        `  Blazar      ${url}/v1/`,
        '              asks for one of [service] tokens, in the header X-Auth-Token',
        `  SkyPilot    ${url}/skypilot/admin-policy`,
        '              OPEN: everyone who reaches this address can use it',
        `  Kubernetes  ${url}/kubernetes/admission`,
        `              ${url}/kubernetes/validation`,
        '              asks for one of [kubernetes] tokens, as Authorization: Bearer, or as the last part of the path',
        '',
      ].join('\n'),
    );
    if (HAS_CURL) {
      const line = pasted(stdout);
      expect(runInShell(line)).toMatch(/^HTTP\/1\.1 401 /);
      expect(runInShell(line.replace('YOUR-TOKEN', '0ther-0123456789abcdef'))).toMatch(/^HTTP\/1\.1 403 /);
    }
    expect(stdout + output().stderr).not.toMatch(/s3cret|0ther|n3xt/);
  });

  it('prints warnings, and logs why a filter failed', async () => {
    const folder = filterFolder({
      'quota-filter.js': filterSource('QuotaFilter', {
        update: "throw new Error('the quota file is gone');",
      }),
    });
    const conf = confFile(
      `[service]\nport = 0\n[enforcement]\nenabled_filters = QuotaFilter\nfilters_path = ${folder}\nmax_lease_duration = 60\n`,
    );
    const { post, output } = await serve(['--config-file', conf]);
    const warning = `warning: ${conf}:6: [enforcement] max_lease_duration: has no effect`;
    expect(output().stderr).toContain(warning);

    const failed = await post('/check-update', capturedText('check-update-extend.json'));
    expect(failed.status).toBe(403);
    expect(await failed.text()).not.toContain('quota file');
    const lines = output().stderr.trimEnd().split('\n');
    expect(lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ filter: 'QuotaFilter', error: 'the quota file is gone' }),
    );
  });
});
