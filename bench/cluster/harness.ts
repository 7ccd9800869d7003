import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { addressesOf, type List } from '../../test/support/list-simulator.ts'
import { type PostgresServer, startPostgres } from '../../test/support/postgres-server.ts'
import {
  ProcessCluster,
  type ProcessClusterOptions,
  type Unit,
} from '../../test/support/process-cluster.ts'

/** Processes of ev on a PostgreSQL with its disk as it is in life, or on files of their own. */
export type Stand = {
  readonly postgres: PostgresServer | null
  readonly egressPool: ProcessCluster
}

export async function openStand(
  onPostgres: boolean,
  options: ProcessClusterOptions,
): Promise<Stand> {
  if (!onPostgres) return { postgres: null, egressPool: await ProcessCluster.open('', options) }
  const settings = { fsync: 'on', full_page_writes: 'on', shared_buffers: '256MB' }
  const postgres = await startPostgres({ settings })
  return { postgres, egressPool: await ProcessCluster.open(await postgres.create('ev'), options) }
}

export async function closeStand({ postgres, egressPool }: Stand): Promise<string[]> {
  const faults = await egressPool.close()
  await postgres?.stop()
  return faults
}

/** Hands a list in; gives its job. */
export async function handIn(
  egressPool: ProcessCluster,
  server: Unit,
  list: List,
): Promise<string> {
  const file = new Blob([['email', ...addressesOf(list)].join('\n')])
  const { job_id } = await egressPool.client(server).file(file, { filename: 'list.csv' })
  return job_id
}

/** User and system time of a process and of all that it started, in ms, as far as they are still there. */
export function cpuMsOf(pid: number): number {
  const children = childrenOf(pid).reduce((sum, child) => sum + cpuMsOf(child), 0)
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    // Own time, and that of children which have ended.
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

/** Linux counts in hundredths of a second on all machines that Node runs on. */
const MS_PER_TICK = 10

/** Resolves when a job is over. */
export async function finished(
  egressPool: ProcessCluster,
  server: Unit,
  job: string,
): Promise<void> {
  const client = egressPool.client(server)
  while ((await client.jobs.get(job)).status !== 'completed') await wait(100)
}
