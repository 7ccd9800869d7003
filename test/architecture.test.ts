import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'

/** The levels of docs/architecture.md, lowest first. A folder imports only from lower levels. */
const LEVELS = [
  ['platform', 'client'],
  ['config', 'engine', 'queue', 'simulator'],
  ['csv', 'db'],
  ['cluster'],
  ['webhooks'],
  ['accounts'],
  ['jobs'],
  ['maintenance'],
  ['doctor', 'api'],
  ['dashboard'],
  ['compose'],
  ['cli', 'index.ts'],
]
const LEVEL = new Map(LEVELS.flatMap((names, level) => names.map(name => [name, level])))

const SOURCE = join(import.meta.dirname, '../src')

/** Access to the outside world, and the files that may have it. */
const RESTRICTED: [name: string, pattern: RegExp, allowed: RegExp][] = [
  [
    'the time',
    /\bDate\.now\(|\bperformance\.now\(|\bnew Date\(\)/,
    /^(platform\/clock|client\/deps)\.ts$/,
  ],
  [
    'timers',
    // A socket has a method of this name.
    /(?<![.\w])set(Timeout|Interval)\(/,
    /^(platform\/clock\.ts|client\/deps\.ts|cli\/|simulator\/)/,
  ],
  [
    'random numbers',
    /\bMath\.random\(|randomBytes|randomInt|randomUUID/,
    /^(platform\/random\.ts|client\/deps\.ts|simulator\/)/,
  ],
  [
    'sockets',
    /from 'node:(net|tls|http|https|http2|dgram)'/,
    // `ev webhooks listen` is a server of its own.
    /^(platform\/ip\.ts|engine\/dns\/(udp-transport|tcp-transport|message)\.ts|engine\/smtp\/(dial|dial-policy)\.ts|cli\/listen\/server\.ts|api\/server\/|config\/values\.ts|webhooks\/transport\/policy-dial\.ts|simulator\/)/,
  ],
  [
    'HTTP requests',
    /'undici'|\bglobalThis\.fetch\b/,
    /^(cli\/lists-download\.ts|client\/deps\.ts|webhooks\/transport\/)/,
  ],
  ['the DNS', /from 'node:dns/, /^engine\/dns\/node-resolver\.ts$/],
  // The page of a webhook secret shows example code.
  ['environment variables', /\bprocess\.env\b/, /^(cli\/|dashboard\/webhooks\/secret\.ts)/],
  ['pg-boss', /from 'pg-boss'/, /^queue\/boss-(queue|tasks)\.ts$/],
  ['mail', /'nodemailer'/, /^webhooks\/alerts\/smtp-transport\.ts$/],
  [
    'SQL',
    /from '(kysely|better-sqlite3|pg)'/,
    /^(db|cluster|webhooks|accounts|jobs|maintenance)\//,
  ],
]

const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.ts'))
  .map(name => {
    const text = readFileSync(join(SOURCE, name), 'utf8')
    return { name, text, imports: importsOf(name, text) }
  })

/** The files that a file imports, relative to `src`. */
function importsOf(name: string, text: string): string[] {
  return [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)]
    .map(match => relative(SOURCE, join(SOURCE, dirname(name), match[1] as string)))
    .filter(path => path.endsWith('.ts'))
}

const moduleOf = (path: string) => path.split('/')[0] as string

describe('modules', () => {
  test('are known', () => {
    expect(files.length).toBeGreaterThan(100)
    const unknown = files.map(({ name }) => moduleOf(name)).filter(name => !LEVEL.has(name))
    expect(unknown).toEqual([])
  })

  test('import only from lower levels', () => {
    const upward = files.flatMap(({ name, imports }) =>
      imports
        .filter(path => moduleOf(path) !== moduleOf(name))
        .filter(path => (LEVEL.get(moduleOf(path)) ?? 99) >= (LEVEL.get(moduleOf(name)) ?? -1))
        .map(path => `${name} → ${path}`),
    )
    expect(upward).toEqual([])
  })

  test('engine imports only platform', () => {
    const others = files
      .filter(({ name }) => moduleOf(name) === 'engine')
      .flatMap(({ imports }) => imports.map(moduleOf))
      .filter(name => name !== 'engine' && name !== 'platform')
    expect(others).toEqual([])
  })

  test('have at least four files in each folder', () => {
    const counts = new Map<string, number>()
    for (const { name } of files) {
      counts.set(dirname(name), (counts.get(dirname(name)) ?? 0) + 1)
    }
    const small = [...counts].filter(([folder, count]) => folder !== '.' && count < 4)
    expect(small.map(([folder]) => folder)).toEqual([])
  })
})

describe('access to', () => {
  test.each(RESTRICTED)('%s is restricted to few files', (_, pattern, allowed) => {
    const others = files.filter(({ name, text }) => pattern.test(text) && !allowed.test(name))
    expect(others.map(({ name }) => name)).toEqual([])
  })

  test('SMTP commands that a verifier must not send is denied to all', () => {
    const senders = files
      .filter(({ name }) => moduleOf(name) !== 'simulator')
      .filter(({ text }) => /['"`](DATA|VRFY|EXPN|BDAT)\b/.test(text))
    expect(senders.map(({ name }) => name)).toEqual([])
  })
})
