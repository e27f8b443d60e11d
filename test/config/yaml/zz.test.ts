import {it} from 'vitest'; it('x', async () => { await import('./zz.ts') }, 300000);
