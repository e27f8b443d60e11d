import { describe, expect, it } from 'vitest';
import { identityOf, nameOf } from '../../src/ledger/identity.ts';

const context = { user_id: 'alice', project_id: 'climate', region_name: 'north' };

describe('identityOf', () => {
  it('takes from the second lease what the first one lacks', () => {
    expect(identityOf(context, [{ name: 'a' }, { id: 'A', name: 'b' }])).toEqual({
      leaseId: 'A',
      region: 'north',
      projectId: 'climate',
      userId: 'alice',
    });
  });

  it.each([undefined, null, '', 7, {}, ['A']])('treats %j as no id', (id) => {
    expect(identityOf(context, [{ id }, { id }]).leaseId).toBeNull();
  });

  it('leaves the names of a nameless region and lease empty', () => {
    const nobody = { user_id: 'alice', project_id: 'climate', region_name: null };
    expect(identityOf(nobody, [{}, {}])).toMatchObject({ region: '' });
    expect(nameOf([{}, {}])).toBe('');
  });

  it('keeps long names apart from each other, and short enough for an index', () => {
    const name = 'x'.repeat(100_000);
    const names = [name, `${name}y`, `y${name}`].map((one) => nameOf([{ name: one }, {}]));
    expect(new Set(names).size).toBe(3);
    expect(names.every((one) => one.length < 300)).toBe(true);
    expect(nameOf([{ name: 'x'.repeat(200) }, {}])).toBe('x'.repeat(200));
  });

  it('has only texts that a database returns unchanged', () => {
    const broken = 'half \ud83e of it';
    const kept = 'half \ufffd of it';
    const identity = identityOf({ user_id: broken, project_id: broken }, [{ id: broken, name: broken }, {}]);
    expect(identity).toMatchObject({ leaseId: kept, projectId: kept, userId: kept });
    expect(nameOf([{ name: '🧪' }, {}])).toBe('🧪');
    // Cut in the middle of one.
    expect(nameOf([{ name: `x${'🧪'.repeat(200)}` }, {}])).not.toMatch(/\p{Surrogate}/u);
  });
});
