import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'

/** The levels of docs/contributing/architecture.md, lowest first. A folder imports only from lower levels. */
const LEVELS = [
  ['platform', 'client'],
  ['config', 'engine', 'queue', 'simulator'],
  ['csv', 'db', 'mcp', 'outbound'],
  ['audit.ts', 'cluster', 'formats'],
  ['webhooks', 'feedback'],
  ['accounts'],
  ['jobs'],
  ['maintenance'],
  ['doctor', 'api'],
  ['dashboard'],
  ['compose'],
  ['cli', 'index.ts'],
]
const LEVEL = new Map(LEVELS.flatMap((names, level) => names.map(name => [name, level])))

const ROOT = join(import.meta.dirname, '..')
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
    // Sockets have a method with this name.
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
    /^(platform\/ip\.ts|engine\/dns\/(udp-transport|tcp-transport|message)\.ts|engine\/smtp\/(dial|dial-policy)\.ts|cli\/webhooks\/listen-server\.ts|api\/server\/|config\/values\.ts|outbound\/policy-dial\.ts|compose\/get-status\.ts|simulator\/)/,
  ],
  [
    'HTTP requests',
    /'undici'|\bglobalThis\.fetch\b/,
    /^(cli\/lists-download\.ts|client\/deps\.ts|compose\/get-status\.ts|outbound\/|webhooks\/https-transport\.ts)/,
  ],
  ['the DNS', /from 'node:dns/, /^engine\/dns\/node-resolver\.ts$/],
  // The page of a webhook secret shows example code.
  ['environment variables', /\bprocess\.env\b/, /^(cli\/|dashboard\/webhooks\/endpoint-parts\.ts)/],
  ['pg-boss', /from 'pg-boss'/, /^queue\/boss-(queue|tasks)\.ts$/],
  // The schemas have an example of each code.
  ['new ApiError', /\bnew ApiError\(/, /^api\/(errors\/|schemas\/error\.ts)/],
  [
    'log messages',
    // Others are declared as events. These pass on lines of a library, a mail, notes and sentences.
    /\b[lL]og\??\.(debug|info|warn|error)\(/,
    /^(cli\/(local\/verify|reachability-hint|serve\/(banner|run-service|run-worker|watch-server))|webhooks\/mail-transport)\.ts$/,
  ],
  ['mail', /'nodemailer'/, /^webhooks\/smtp-transport\.ts$/],
  [
    'SQL',
    /from '(kysely|better-sqlite3|pg)'/,
    /^((db|cluster|webhooks|feedback|accounts|jobs|maintenance)\/|audit\.ts$)/,
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

/** Files used from outside the package, and programs. */
const ENTRY_POINTS = new Set(['index.ts', 'client/client.ts', 'client/types.ts'])
const EXPORT =
  /^export (?:abstract )?(?:async )?(?:const|let|function\*?|class|type|interface|enum) (\w+)/gm
const IMPORT =
  /(?:import|export)\s+(?:type\s+)?(\{[^}]*\}|\*[^']*|\w+)\s*from\s*'(\.[^']+)'|import\('(\.[^']+)'\)/g

/** All programs of the project, with their paths. */
function readPrograms(): { readonly path: string; readonly text: string }[] {
  return ['src', 'test', 'bench', 'tools'].flatMap(folder =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter(name => /\.m?[jt]s$/.test(name) && !name.includes('node_modules'))
      .map(name => join(ROOT, folder, name))
      .map(path => ({ path, text: readFileSync(path, 'utf8') })),
  )
}

/** Names that files of the project import, as `file name`; `file *` if a file is imported as a whole. */
function importedNames(): Set<string> {
  const names = new Set<string>()
  for (const { path, text } of readPrograms()) {
    for (const [, list, from, dynamic] of text.matchAll(IMPORT)) {
      const target = relative(SOURCE, join(dirname(path), (from ?? dynamic) as string))
      const parts = list?.startsWith('{') ? list.slice(1, -1).split(',') : ['*']
      for (const part of parts) {
        const [name] = part
          .trim()
          .replace(/^type /, '')
          .split(' as ')
        names.add(`${target} ${name}`)
      }
    }
  }
  return names
}

/** Groups of files that import one another, by Tarjan's algorithm. */
function cyclesIn(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const stack: string[] = []
  const cycles: string[][] = []
  const visit = (file: string): number => {
    const index = order.size
    order.set(file, index)
    lowest.set(file, index)
    stack.push(file)
    for (const next of imports.get(file) ?? []) {
      const reached = order.has(next)
        ? stack.includes(next)
          ? (order.get(next) as number)
          : index
        : visit(next)
      lowest.set(file, Math.min(lowest.get(file) as number, reached))
    }
    if (lowest.get(file) === index) {
      const group = stack.splice(stack.indexOf(file))
      if (group.length > 1) cycles.push(group)
    }
    return lowest.get(file) as number
  }
  for (const file of imports.keys()) if (!order.has(file)) visit(file)
  return cycles
}

/** The module of each table, from the `tables.ts` of the modules and `audit.ts`. */
function tableOwners(): Map<string, string> {
  const owners = new Map<string, string>()
  for (const { name, text } of files) {
    const [, body] = /interface Schema \{([^}]*)\}/.exec(text) ?? []
    if (!/(\/tables|^audit)\.ts$/.test(name) || body === undefined) continue
    for (const [, table] of body.matchAll(/(\w+):/g)) owners.set(table as string, moduleOf(name))
  }
  return owners
}

/** Tables in the statements of a file. */
function tablesIn(text: string): string[] {
  const calls =
    /(?:selectFrom|insertInto|updateTable|deleteFrom|innerJoin|leftJoin|createExpiry)\(\s*'(\w+)(?: as \w+)?'/g
  const found = [...text.matchAll(calls)].map(match => match[1] as string)
  for (const [, statement] of text.matchAll(/sql(?:<[^`]*?>)?`([^`]*)`/g)) {
    const names = (statement as string).matchAll(/\b(?:from|into|update|join)\s+(\w+)/g)
    found.push(...[...names].map(match => match[1] as string))
  }
  return [...new Set(found)]
}

/** Statements that need a table of another module, with the reason. */
const SHARED_STATEMENTS: Record<string, string> = {
  'jobs/item-claims.ts: member': 'a claim and the membership of its holder are one condition',
  'jobs/item-claims.ts: setting': 'one member unpins items: the claim is a conditional update',
  'jobs/job-list.ts: account': 'the load of an account is its counter and its open jobs',
  'jobs/job-credits.ts: credit': 'reservations of a database are recounted from its open jobs',
  'jobs/job-credits.ts: hold': 'reservations of a database are recounted from its open jobs',
  'jobs/job-credits.ts: member': 'reservations of a database are recounted from its open jobs',
  'jobs/job-state.ts: member': 'a result and the membership of its holder are one condition',
  'jobs/member-claims.ts: hold': 'claims without a member are found by one statement',
  'jobs/member-claims.ts: member': 'claims without a member are found by one statement',
  'maintenance/migrate.ts: item': 'a migration copies all tables',
  'maintenance/migrate.ts: job': 'a migration copies all tables',
  'maintenance/purge-data.ts: answer': 'an address is erased from all tables',
  'maintenance/purge-data.ts: attempt': 'an address is erased from all tables',
  'maintenance/purge-data.ts: delivery': 'an address is erased from all tables',
  'maintenance/purge-data.ts: event': 'an address is erased from all tables',
  'maintenance/purge-data.ts: item': 'an address is erased from all tables',
  'maintenance/purge-data.ts: job': 'an address is erased from all tables',
  'maintenance/purge-data.ts: verification': 'an address is erased from all tables',
  'maintenance/purge-data.ts: webhook': 'an address is erased from all tables',
  'maintenance/purge-data.ts: feedback': 'an address is erased from all tables',
  'maintenance/purge-data.ts: feedback_address': 'an address is erased from all tables',
  'maintenance/retention-job.ts: setting': 'the clock that was last seen is a setting',
  'webhooks/alert-store.ts: account': 'an alert is read with the mail address of its account',
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

  test('cli imports nothing of api but its server', () => {
    const others = files
      .filter(({ name }) => moduleOf(name) === 'cli')
      .flatMap(({ imports }) => imports)
      .filter(path => moduleOf(path) === 'api' && !path.startsWith('api/server/'))
    expect(others).toEqual([])
  })

  test('have no import cycle', () => {
    const imports = new Map(files.map(file => [file.name, file.imports]))
    expect(cyclesIn(imports)).toEqual([])
  })

  test('export nothing that no other file imports', () => {
    const imported = importedNames()
    const unused = files
      .filter(({ name }) => !ENTRY_POINTS.has(name))
      .flatMap(({ name, text }) =>
        [...text.matchAll(EXPORT)]
          .filter(match => !imported.has(`${name} ${match[1]}`) && !imported.has(`${name} *`))
          .map(match => `${name}: ${match[1]}`),
      )
    expect(unused).toEqual([])
  })
})

describe('tables', () => {
  test('are read and written by the module that declares them', () => {
    const owners = tableOwners()
    expect(owners.size).toBeGreaterThan(20)
    const others = files
      .filter(({ name }) => moduleOf(name) !== 'db')
      .flatMap(({ name, text }) =>
        tablesIn(text)
          .filter(table => (owners.get(table) ?? moduleOf(name)) !== moduleOf(name))
          .map(table => `${name}: ${table}`),
      )
    expect(others.sort()).toEqual(Object.keys(SHARED_STATEMENTS).sort())
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

test('no object literal is spread into another one', () => {
  // It allocates, and TypeScript does not check the names of its properties.
  const spread = readPrograms().filter(({ text }) => /\.\.\.\{/.test(text))
  expect(spread.map(({ path }) => path)).toEqual([])
})
