import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { startScenarioProcess } from '../../src/simulator/simulator-process.ts'
import { rowsIn } from '../support/csv.ts'
import { emptyFolder, simulatorFlags, startEv } from '../support/ev-process.ts'
import { ProcessCluster } from '../support/process-cluster.ts'
import { fillDisk, mountSmallDisk } from '../support/small-disk.ts'
import {
  LIMITS,
  REASONS,
  readReasons,
  SCENARIO,
  TEXTS,
  untilAsked,
  untilCompleted,
} from './simulated-list.ts'

/** Room for the database before and after the disk is full. */
const DISK_MIB = 32
/** Addresses of the list after which the disk is full. */
const ASKED_BEFORE = 60

const disk = mountSmallDisk(DISK_MIB)

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

describe.skipIf(disk === null)('a list on a disk that is full (needs root)', () => {
  test('ends ev bulk with a message, and the same command finishes it once there is space', async () => {
    const simulator = await startScenarioProcess(SCENARIO)
    closing.push(() => simulator.close())
    const home = emptyFolder()
    writeFileSync(join(home, 'list.csv'), ['email', ...TEXTS, ''].join('\n'))
    const args = ['bulk', 'list.csv', '-o', 'out.csv', '--data-dir', join(disk as string, 'bulk')]
    const start = () => startEv([...args, ...simulatorFlags(simulator), ...LIMITS], { home })
    const first = start()
    await untilAsked(simulator, ASKED_BEFORE)
    const ballast = fillDisk(disk as string)
    const failed = await first.ended
    expect(failed.code).toBeGreaterThan(0)
    expect(failed.stderr).toMatch(/disk is full|no space left/i)
    rmSync(ballast)
    const last = await start().ended
    expect(last.code, last.stderr).toBe(0)
    expect(rowsIn(join(home, 'out.csv')).map(row => row.ev_reason)).toEqual(REASONS)
  })

  test('waits in a service until there is space, and loses no row', async () => {
    const cluster = await ProcessCluster.open('', {
      scenario: SCENARIO,
      args: LIMITS,
      serverArgs: ['--limits', 'off', '--plan', 'enterprise', '--min-free-disk', '1'],
    })
    closing.push(async () => expect(await cluster.close()).toEqual([]))
    const data = ['--data-dir', join(disk as string, 'serve')]
    const server = await cluster.start('serve', 'server', data)
    const client = cluster.client(server)
    const { job_id } = await client.batch([...TEXTS])
    await untilAsked(cluster.world, ASKED_BEFORE)
    const ballast = fillDisk(disk as string)
    // Its results wait from now on.
    await expect.poll(() => server.log()).toContain('disk is full')
    const { processed_emails } = await client.jobs.get(job_id)
    expect(processed_emails).toBeLessThan(TEXTS.length)
    rmSync(ballast)
    await untilCompleted(client, job_id)
    expect(await readReasons(client, job_id)).toEqual(REASONS)
  })
})
