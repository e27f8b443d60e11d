/** A line break, as text, inside JSON, or in HTML. */
const BREAK = String.raw`(?:\r?\n|\\r?\\n|\\n|<br\s*/?>)`;
const INDENT = String.raw`(?:[ \t]|\\t|&nbsp;)*`;

/** How the languages that services are written in print where they were. Bounded, since what is looked at is a stranger's text. */
const TRACES: readonly RegExp[] = [
  // Python
  /Traceback \(most recent call last\)/,
  /File \\?(?:"|&quot;|&#34;)[^"\n]{1,300}\\?(?:"|&quot;|&#34;), line \d+/,
  // JavaScript, Java, Kotlin, C#: `at place (file.js:1:2)`, `at package.Class.method(File.java:1)`, `at A.B() in file:line 1`
  new RegExp(
    `${BREAK}${INDENT}at [^\\n<]{0,300}(?:[.][a-z]\\w*:\\d|node:[\\w/]+:\\d|:line \\d|[(]Native Method[)])`,
    'i',
  ),
  // Go, Rust
  /goroutine \d+ \[[a-z ,]+\]:/,
  /thread '[^']*' panicked at/,
  // Ruby, PHP
  /\.rb:\d+:in [`']/,
  /#\d+ [^\n<]{0,300}\.php\(\d+\)/,
];

/** Whether a body contains a stack trace. */
export function stackTraceIn(body: string): boolean {
  return TRACES.some((trace) => trace.test(body));
}
