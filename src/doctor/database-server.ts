import type { ConnectionLimit, ServerFacts, ServerInspection } from '../db/postgres/inspect.ts'
import { POOLED, USE_SESSION_MODE } from '../db/postgres/suitability.ts'
import { SECOND } from '../platform/clock.ts'
import { formatDurationInWords } from '../platform/format.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

/**
 * Checks that a PostgreSQL server is usable. `url` is its URL without password, `connectionsMax`
 * the number of connections that one ev process may open.
 */
export function databaseServerFindings(
  inspection: ServerInspection,
  url: string,
  connectionsMax: number,
): readonly Finding[] {
  if (inspection.kind === 'unreachable') {
    return [fail(`cannot use the database ${url}: ${inspection.why}`, inspection.remedy)]
  }
  const problems = [...failures(inspection), ...warnings(inspection, connectionsMax)]
  return problems.length > 0 ? problems : [ok(summary(inspection, url))]
}

const VERSION_MIN = 13

function failures(facts: ServerFacts): Finding[] {
  const major = Math.floor(facts.version / 10_000)
  return [
    major < VERSION_MIN &&
      fail(
        `the server is PostgreSQL ${major}; ev requires ${VERSION_MIN} or later`,
        'Upgrade the server, or set another one with --database.',
      ),
    facts.isStandby &&
      fail('the server is a read-only standby', 'Set the primary server with --database.'),
    facts.encoding !== 'UTF8' &&
      fail(
        `the database encoding is ${facts.encoding}; ev requires UTF8`,
        "Create another database: create database NAME encoding 'UTF8' template template0; then set it with --database.",
      ),
    facts.isPooled && fail(POOLED, USE_SESSION_MODE),
    facts.isNewer &&
      fail('the database was written by a newer version of ev', 'Upgrade ev to that version.'),
    !facts.canCreateTables &&
      fail(
        'the user cannot create tables in the database',
        'As the database owner, run: grant create on schema public to USER.',
      ),
    !facts.canCreateQueue &&
      fail(
        'the user cannot create or use the schema ev_boss, which contains the queue tables',
        'As the database owner, run: grant create on database NAME to USER. If the schema exists: grant usage on schema ev_boss to USER.',
      ),
    facts.closedTables.length > 0 &&
      fail(
        `the user cannot read and write existing tables: ${facts.closedTables.join(', ')}`,
        'Connect as the owner of the tables, or as the owner grant all on them to this user.',
      ),
  ].filter(finding => finding !== false)
}

/** A larger offset shows in the delays that ev reports; schedules tolerate more. */
const CLOCK_OFF_MAX_MS = 5 * SECOND
/** A list of a million rows needs about 20,000 commits. */
const COMMIT_MAX_MS = 50

function warnings(facts: ServerFacts, connectionsMax: number): Finding[] {
  const { limit, clockAheadMs, commitMs } = facts
  return [
    limit.max - limit.used < connectionsMax &&
      warn(
        `${usedOf(limit)} are in use; each ev process needs up to ${connectionsMax}`,
        `${raise(limit)} Or lower --database-connections.`,
      ),
    Math.abs(clockAheadMs) > CLOCK_OFF_MAX_MS &&
      warn(
        `the clock of this machine is ${formatDurationInWords(Math.abs(clockAheadMs), Math.round)} ${clockAheadMs > 0 ? 'ahead of' : 'behind'} the database server`,
        'Synchronize both clocks: run timedatectl set-ntp true, or chrony.',
      ),
    commitMs > COMMIT_MAX_MS &&
      warn(
        `a commit takes ${Math.round(commitMs)} ms, which slows down lists`,
        'Check the disk of the server and the network latency. Run ev close to the server.',
      ),
  ].filter(finding => finding !== false)
}

const usedOf = ({ of, name, used, max }: ConnectionLimit) =>
  `${used} of ${max} connections of the ${of === 'server' ? of : `${of} ${name}`}`

function raise({ of, name }: ConnectionLimit): string {
  if (of === 'server') return 'Raise max_connections of the server, or close other connections.'
  return `Raise the limit: alter ${of} "${name}" connection limit N.`
}

function summary({ version, limit, commitMs }: ServerFacts, url: string) {
  const release = `${Math.floor(version / 10_000)}.${version % 10_000}`
  return `PostgreSQL ${release} at ${url}: ${usedOf(limit)} are in use, a commit takes ${commitMs.toFixed(1)} ms, clocks are in sync`
}
