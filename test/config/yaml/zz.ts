import { YamlDocument } from '../../../src/config/yaml/document.ts';
const cases: [string, string][] = [
 ['million lines', 'a: 1\n'.repeat(1_000_000)],
 ['million seq', '- 1\n'.repeat(1_000_000)],
 ['million comments', '# secret\n'.repeat(1_000_000)],
 ['million empty', '\n'.repeat(1_000_000)],
 ['million block literal', 'a: |\n' + '  x\n'.repeat(1_000_000)],
 ['million plain multi', 'a:\n' + '  x\n'.repeat(1_000_000)],
 ['million quoted', 'a: "' + '  x\n'.repeat(1_000_000)+'"'],
 ['million single', "a: '" + '  x\n'.repeat(1_000_000)+"'"],
 ['5MB spaces', 'a: ' + ' '.repeat(5_000_000)+'b'],
 ['5MB text', 'a: ' + 'x '.repeat(2_500_000)],
 ['quotes', "'".repeat(1_000_000)],
 ['docs', '---\n'.repeat(1_000_000)],
 ['tabs', '\t'.repeat(1_000_000)],
 ['dirs', '%YAML 1.1\n'.repeat(300_000)],
 ['[]', '[' .repeat(100_000)],
 ['{}', '{' .repeat(100_000)],
 ['[]c', '[' .repeat(100_000)+']'.repeat(100_000)],
 ['{a:', '{a: ' .repeat(100_000)],
 ['- ', '- ' .repeat(100_000)],
 ['? ', '? ' .repeat(100_000)],
 ['bomb', 'a: &a ["lol"]\n' + [...'bcdefghij'].map((c,i)=>`${c}: &${c} [${Array(9).fill('*'+'abcdefghij'[i]).join(',')}]`).join('\n')],
 ['merge bomb', 'a: &a {x: 1}\n' + [...'bcdefghij'].map((c,i)=>`${c}: &${c} {<<: [${Array(9).fill('*'+'abcdefghij'[i]).join(',')}], k${i}: *${'abcdefghij'[i]}}`).join('\n')],
 ['self', '&a [*a]'], ['self2', 'a: &a\n  b: *a'], ['self3', '&a {<<: *a}'],
 ['deep alias', Array.from({length:2000},(_, i)=>`- &a${i} [${i ? '*a'+(i-1):''}]`).join('\n')],
 ['quadratic', '- &a ' + JSON.stringify(Array(20000).fill(1)) + '\n' + '- *a\n'.repeat(10000)],
 ['many anchors', '- &a ' + JSON.stringify(Array(3).fill(1)) + '\n' + '- *a\n'.repeat(50000)],
 ['wide map', Array.from({length:60000},(_,i)=>`k${i}: 1\n`).join('')],
 ['regex backtrack', 'a: ' + '1_'.repeat(500000)],
 ['regex colons', 'a: 1' + ':1'.repeat(100000)],
 ['big int', 'a: 1' + '0'.repeat(300000)], ['hex', 'a: 0x' + 'f'.repeat(300000)],
 ['key', 'a: ! ' + 'f'.repeat(300000)],
 ['plain long', 'x'.repeat(5_000_000)],
];
for (const n of [99, 100,101,200,500,1000,2000,3000,5000,10000]) { cases.push([`[${n}`, '['.repeat(n)+']'.repeat(n)], [`- ${n}`, '- '.repeat(n)+'x'], [`{${n}`, '{a: '.repeat(n)+'}'.repeat(n)],[`?${n}`, '? '.repeat(n)+'x'], [`b${n}`, Array.from({length:Math.min(n,3000)},(_,i)=>' '.repeat(i)+'a:').join('\n')]) }
for (const [name, text] of cases) {
  const t = performance.now(); let r: string;
  try { const d = YamlDocument.parse(text); r = 'ok'; } catch (e: any) { r = e.name + ' ' + String(e.message).slice(0,100) }
  console.log(name.padEnd(22), String(Math.round(performance.now()-t)).padStart(6), r);
}
