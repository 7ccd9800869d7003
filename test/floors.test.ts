import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'

// The floors of docs/architecture.md: a folder imports only from floors below its own; peers do not know one another.
const FLOOR: Record<string, number> = {
  base: 0,
  client: 0,
  address: 1,
  dns: 1,
  smtp: 1,
  config: 1,
  probe: 2,
  verdict: 2,
  engine: 3,
  job: 3,
  hook: 3,
  account: 3,
  store: 4,
  queue: 4,
  work: 5,
  doctor: 5,
  webhooks: 6,
  accounts: 6,
  jobs: 6,
  maintenance: 6,
  world: 7,
  http: 7,
  dashboard: 7,
  'timings.ts': 8,
  'wire.ts': 8,
  'wire-doctor.ts': 8,
  'wire-post.ts': 8,
  'wire-work.ts': 9,
  'wire-service.ts': 10,
  'index.ts': 11,
  cli: 11,
}
const SOURCE = join(import.meta.dirname, '../src')
/** Doors to the world, and the only files that may open them. */
const DOORS: [name: string, pattern: RegExp, allowed: RegExp][] = [
  [
    'the time',
    /\bDate\.now\(|\bperformance\.now\(|\bnew Date\(\)/,
    /^(base\/clock|client\/connection\/doors)\.ts$/,
  ],
  [
    'timers',
    // A socket's own setTimeout is none.
    /(?<![.\w])set(Timeout|Interval)\(/,
    /^(base\/clock\.ts|client\/connection\/doors\.ts|cli\/|world\/)/,
  ],
  [
    'chance',
    /\bMath\.random\(|randomBytes|randomInt|randomUUID/,
    /^(base\/random\.ts|client\/connection\/doors\.ts|world\/)/,
  ],
  [
    'sockets',
    /from 'node:(net|tls|http|https|http2|dgram)'/,
    // The receiver of `ev webhooks listen` is a server, and nothing of the service.
    /^(base\/ip\.ts|dns\/(udp|tcp)-transport\.ts|dns\/message\.ts|cli\/webhooks\/listener\/server\.ts|http\/server\/|smtp\/(dial|public-address)\.ts|config\/values\.ts|work\/post\/dial\.ts|world\/)/,
  ],
  [
    'requests to others',
    /'undici'|\bglobalThis\.fetch\b/,
    /^(cli\/lists\/download\.ts|client\/connection\/doors\.ts|work\/post\/)/,
  ],
  ['DNS', /from 'node:dns/, /^dns\/node-resolver\.ts$/],
  // The page that shows a secret shows a program for people, too.
  ['settings', /\bprocess\.env\b/, /^(cli\/|dashboard\/webhooks\/secret\.ts)/],
  ['jobs of PostgreSQL', /from 'pg-boss'/, /^queue\/boss-(queue|tasks)\.ts$/],
  ['mail', /'nodemailer'/, /^work\/notify\/smtp-notify\.ts$/],
  ['SQL', /from '(kysely|better-sqlite3|pg)'/, /^store\//],
]

const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.ts'))
  .map(name => ({ name, text: readFileSync(join(SOURCE, name), 'utf8') }))

const room = (path: string) => path.split('/')[0] as string
const imports = (text: string) =>
  [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(match => match[1] as string)

describe('the house', () => {
  test('has files, and each stands on a known floor', () => {
    expect(files.length).toBeGreaterThan(20)
    expect(files.map(file => room(file.name)).filter(name => !(name in FLOOR))).toEqual([])
  })

  test('a folder imports only from floors below its own', () => {
    const upward = files.flatMap(file =>
      imports(file.text)
        .map(path => relative(SOURCE, join(SOURCE, dirname(file.name), path)))
        .filter(target => room(target) !== room(file.name))
        .filter(target => !((FLOOR[room(target)] ?? 99) < (FLOOR[room(file.name)] ?? -1)))
        .map(target => `${file.name} → ${target}`),
    )
    expect(upward).toEqual([])
  })

  test.each(DOORS)('%s comes in by its door alone', (_, pattern, allowed) => {
    const burglars = files
      .filter(file => pattern.test(file.text) && !allowed.test(file.name))
      .map(file => file.name)
    expect(burglars).toEqual([])
  })

  test('no file of ours knows the commands that a verifier must not use', () => {
    const speaking = files
      .filter(file => !file.name.startsWith('world/'))
      .filter(file => /['"`](DATA|VRFY|EXPN|BDAT)\b/.test(file.text))
    expect(speaking.map(file => file.name)).toEqual([])
  })
})
