import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { addressesOf, type List } from '../../test/support/list-simulator.ts'
import {
  type PostgresOptions,
  type PostgresServer,
  startPostgres,
} from '../../test/support/postgres-server.ts'
import {
  ProcessCluster,
  type ProcessClusterOptions,
  type Unit,
} from '../../test/support/process-cluster.ts'

/** Processes of ev on PostgreSQL with production disk settings, or on SQLite. */
export type Harness = {
  readonly postgres: PostgresServer | null
  readonly cluster: ProcessCluster
}

export async function openHarness(
  onPostgres: boolean,
  options: ProcessClusterOptions,
  settings: PostgresOptions['settings'] = {},
): Promise<Harness> {
  if (!onPostgres) return { postgres: null, cluster: await ProcessCluster.open('', options) }
  const production = { fsync: 'on', full_page_writes: 'on', shared_buffers: '256MB' }
  const postgres = await startPostgres({ settings: { ...production, ...settings } })
  return { postgres, cluster: await ProcessCluster.open(await postgres.create('ev'), options) }
}

export async function closeHarness({ postgres, cluster }: Harness): Promise<string[]> {
  const faults = await cluster.close()
  await postgres?.stop()
  return faults
}

/** Submits a list and returns the ID of its job. */
export const submitList = (cluster: ProcessCluster, server: Unit, list: List): Promise<string> =>
  submitAddresses(cluster, server, addressesOf(list))

export async function submitAddresses(
  cluster: ProcessCluster,
  server: Unit,
  addresses: readonly string[],
): Promise<string> {
  const file = new Blob([['email', ...addresses].join('\n')])
  const { job_id } = await cluster.client(server).file(file, { filename: 'list.csv' })
  return job_id
}

/** Returns the user and system time, in ms, of a process and its running children. */
export function cpuMsOf(pid: number): number {
  const children = childrenOf(pid).reduce((sum, child) => sum + cpuMsOf(child), 0)
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    // Its own time, and that of children that have exited.
    return (
      children + [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0) * MS_PER_TICK
    )
  } catch {
    return children
  }
}

function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(other => {
      try {
        const stat = readFileSync(`/proc/${other}/stat`, 'utf8')
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid
      } catch {
        return false
      }
    })
}

/** The clock tick of Linux is 10 ms on all platforms of Node. */
const MS_PER_TICK = 10

export async function waitUntilCompleted(
  cluster: ProcessCluster,
  server: Unit,
  job: string,
): Promise<void> {
  const client = cluster.client(server)
  while ((await client.jobs.get(job)).status !== 'completed') await wait(100)
}
