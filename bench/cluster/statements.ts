import { setTimeout as wait } from 'node:timers/promises'
import { addressesOf, type List, scenarioOf } from '../../test/support/list-simulator.ts'
import type { ProcessCluster, Unit } from '../../test/support/process-cluster.ts'
import { closeHarness, openHarness, submitAddresses } from './harness.ts'

const LISTS = [2, 10]
const PROCESSES = [1, 3]
/** Number of statements listed by text. */
const LISTED_MAX = 16
/** Number of characters of their texts. */
const TEXT_MAX = 90
/** Time without work before the statements are counted, and for how long, ms. */
const SETTLE_MS = 5_000
const IDLE_MS = 20_000
/** Marks the statements of the benchmark itself, which are not counted. */
const OWN = '/* benchmark */'

/**
 * Counts what a server and two workers cause in PostgreSQL for an address: statements, WAL bytes
 * and row updates, with the addresses in two and in ten lists that are verified at once. The
 * simulator has no latency.
 */
export async function measureStatements(
  print: (line: string) => void,
  rows = 20_000,
): Promise<string[]> {
  print(`\n### PostgreSQL per address, ${rows.toLocaleString('en')} addresses\n`)
  for (const line of HEAD) print(line)
  const per = (count: number, digits = 2) => (count / rows).toFixed(digits)
  const details: string[] = []
  for (const lists of LISTS) {
    const measured = await countStatements(rows, lists)
    const { statements, tables } = measured
    print(formatCounts(measured, rows, lists))
    details.push(
      `\n${lists} lists:\n`,
      '| statement | calls | WAL bytes |\n| --- | --- | --- |',
      ...mostExpensive(statements).map(one => {
        return `| ${one.query} | ${per(one.calls, 3)} | ${per(one.wal, 0)} |`
      }),
      '\n| table | inserts | updates | HOT | deletes |\n| --- | --- | --- | --- | --- |',
      ...tables.map(({ name, inserts, updates, hot, deletes }) => {
        const share = percent(hot, updates)
        return `| ${name} | ${per(inserts)} | ${per(updates)} | ${share} | ${per(deletes)} |`
      }),
    )
  }
  for (const line of details) print(line)
  return []
}

const HEAD = [
  '| lists | statements | WAL bytes | row updates | of these HOT |',
  '| --- | --- | --- | --- | --- |',
]

/** Counts the same for the page about performance, and returns the lines of its table. */
export async function tabulateStatements(rows = 20_000): Promise<string[]> {
  const lines = [...HEAD]
  for (const lists of LISTS)
    lines.push(formatCounts(await countStatements(rows, lists), rows, lists))
  return lines
}

function formatCounts(
  { calls, wal, tables }: Awaited<ReturnType<typeof countStatements>>,
  rows: number,
  lists: number,
): string {
  const [updates, hot] = [sumOf(tables, 'updates'), sumOf(tables, 'hot')]
  const per = (count: number, digits = 2) => (count / rows).toFixed(digits)
  return `| ${[lists, per(calls), per(wal, 0), per(updates), percent(hot, updates)].join(' | ')} |`
}

/** Counts the statements of processes without work. */
export async function measureIdle(print: (line: string) => void): Promise<string[]> {
  print('\n### Statements per second of processes without work\n')
  for (const processes of PROCESSES) {
    const statements = await countIdle(processes)
    const perSecond = (calls: number) => (calls / (IDLE_MS / 1_000)).toFixed(2)
    print(`\n| ${processes} processes | ${perSecond(sumOf(statements, 'calls'))} |\n| --- | --- |`)
    for (const { query, calls } of statements.slice(0, LISTED_MAX))
      print(`| ${query} | ${perSecond(calls)} |`)
  }
  return []
}

const sumOf = <Key extends string>(rows: readonly Record<Key, number>[], key: Key): number =>
  rows.reduce((sum, row) => sum + row[key], 0)

/** Returns the statements with the most calls and those with the most WAL, without repetition. */
function mostExpensive(byCalls: readonly Statement[]): Statement[] {
  const byWal = byCalls.toSorted((a, b) => b.wal - a.wal)
  return [...new Set([...byCalls.slice(0, LISTED_MAX), ...byWal.slice(0, LISTED_MAX / 2)])]
}

const percent = (part: number, all: number) =>
  all === 0 ? '' : `${((100 * part) / all).toFixed(0)}%`

/**
 * Verifies addresses on 300 domains in several lists at once, with a server and two workers, and
 * counts what they cause in PostgreSQL.
 */
export async function countStatements(rows: number, lists: number) {
  const list = { rows, domains: 300 }
  return withCluster(3, list, async (cluster, server) => {
    const addresses = addressesOf(list)
    const size = Math.ceil(rows / lists)
    const before = await walBytes(cluster)
    await resetCounters(cluster)
    await Promise.all(
      Array.from({ length: lists }, (_, n) =>
        submitAddresses(cluster, server, addresses.slice(n * size, (n + 1) * size)),
      ),
    )
    while ((await openJobs(cluster)) > 0) await wait(500)
    const wal = (await walBytes(cluster)) - before
    const statements = await readStatements(cluster)
    // The server adds the counters of a connection to those of the tables when it is closed.
    await Promise.all(cluster.units.map(unit => unit.end('SIGTERM')))
    const tables = await readTables(cluster)
    return { calls: sumOf(statements, 'calls'), wal, statements, tables }
  })
}

async function countIdle(processes: number): Promise<Statement[]> {
  return withCluster(processes, { rows: 1, domains: 1 }, async cluster => {
    await wait(SETTLE_MS)
    await resetCounters(cluster)
    await wait(IDLE_MS)
    return readStatements(cluster)
  })
}

/** Runs `work` with a server and workers, `processes` in total. */
async function withCluster<T>(
  processes: number,
  list: List,
  work: (cluster: ProcessCluster, server: Unit) => Promise<T>,
): Promise<T> {
  const harness = await openHarness(
    true,
    {
      scenario: scenarioOf(list, 0),
      serverArgs: ['--limits', 'off', '--plan', 'enterprise'],
      args: [
        ...['--sessions-per-second', '1000', '--recipients-per-session', '20'],
        ...['--concurrency', '50'],
      ],
    },
    { shared_preload_libraries: 'pg_stat_statements' },
  )
  try {
    const { cluster } = harness
    const server = await cluster.start('serve', 'server')
    for (let n = 1; n < processes; n++) await cluster.start('worker', `worker${n}`)
    await cluster.ask('create extension pg_stat_statements')
    await wait(2_000)
    return await work(cluster, server)
  } finally {
    await closeHarness(harness)
  }
}

async function resetCounters(cluster: ProcessCluster): Promise<void> {
  await cluster.ask(`${OWN} select pg_stat_statements_reset()`)
}

async function walBytes(cluster: ProcessCluster): Promise<number> {
  const [row] = await cluster.ask<{ bytes: string }>(
    `${OWN} select pg_current_wal_insert_lsn() - '0/0' as bytes`,
  )
  return Number(row?.bytes)
}

async function openJobs(cluster: ProcessCluster): Promise<number> {
  const [row] = await cluster.ask<{ count: string }>(
    `${OWN} select count(*) as count from job where finished_at is null`,
  )
  return Number(row?.count)
}

type Statement = { readonly query: string; readonly calls: number; readonly wal: number }

/**
 * Reads the executed statements, the most frequent ones first, without those that check foreign
 * keys in the server.
 */
async function readStatements(cluster: ProcessCluster): Promise<Statement[]> {
  const rows = await cluster.ask<{ query: string; calls: string; wal: string }>(`
    ${OWN} select query, calls, wal_bytes as wal from pg_stat_statements
    where dbid = (select oid from pg_database where datname = current_database())
      and query not like '${OWN}%' and query not like '%FROM ONLY%FOR KEY SHARE%'
    order by calls desc`)
  return rows.map(({ query, calls, wal }) => ({
    query: query.replace(/\s+/g, ' ').replaceAll('|', '\\|').trim().slice(0, TEXT_MAX),
    calls: Number(calls),
    wal: Number(wal),
  }))
}

async function readTables(cluster: ProcessCluster) {
  const rows = await cluster.ask<
    Record<'name' | 'inserts' | 'updates' | 'hot' | 'deletes', string>
  >(`
    ${OWN} select relname as name, n_tup_ins as inserts, n_tup_upd as updates,
      n_tup_hot_upd as hot, n_tup_del as deletes
    from pg_stat_user_tables where n_tup_ins + n_tup_upd > 100 order by n_tup_upd desc`)
  return rows.map(({ name, ...counts }) => ({
    name,
    inserts: Number(counts.inserts),
    updates: Number(counts.updates),
    hot: Number(counts.hot),
    deletes: Number(counts.deletes),
  }))
}
