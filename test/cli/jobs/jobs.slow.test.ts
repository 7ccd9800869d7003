import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Scenario } from '../../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts'
import { homeWith, jobCommands, listAt, SLOW } from '../../support/cli-jobs.ts'
import { emptyFolder, runEv, simulatorFlags, startEv } from '../../support/ev-process.ts'
import { expectSentence } from '../../support/home.ts'
import { withOwnHosts } from '../../support/own-hosts.ts'
import { untilProbed } from '../../support/probe-counts.ts'

const { jobs, only } = jobCommands(runEv)

// Each test runs several commands in sequence, which may be slow on a busy machine.
describe.concurrent('a running job', () => {
  let simulator: Simulator
  beforeAll(async () => {
    simulator = await startSimulator(SCENARIO)
  })
  afterAll(() => simulator.close())

  const args = (...more: string[]) => [
    ...[
      'bulk',
      'list.csv',
      '-o',
      'out.csv',
      '--data-dir',
      'data',
      ...simulatorFlags(simulator),
      ...more,
    ],
  ]

  test('is finished although its process is killed in the middle, with one result for each row', async () => {
    const rows = 2_000
    const home = homeWith(listAt('grey.test', rows))
    const resume = ['data', ...simulatorFlags(simulator)]
    const start = (id: string) => startEv(['jobs', 'resume', id, '--data-dir', ...resume], { home })
    const first = startEv(args('--no-header'), { home })
    await untilProbed(simulator, 'mx.grey.test', 100)
    const { job_id } = await only(home)
    expect((await jobs(home, 'finish', job_id)).stdout).toContain(`Finishing ${job_id}`)
    first.child.kill('SIGKILL')
    await first.ended
    for (let kill = 0; kill < 3; kill++) {
      const running = start(job_id)
      await running.printed('Finishing:', 'stderr').catch(() => {})
      running.child.kill('SIGKILL')
      await running.ended
    }
    if ((await only(home)).state !== 'completed') {
      const { code, stderr } = await start(job_id).ended
      expect(code, stderr).toBe(0)
    }
    expect(await only(home)).toMatchObject({ state: 'completed', done: rows, unknown: rows })
    const lines = readFileSync(join(home, 'out.csv'), 'utf8').trimEnd().split('\n')
    const verified = lines
      .filter(line => line.includes('@grey.test'))
      .map(line => line.split(',')[0])
    expect([verified.length, new Set(verified).size]).toEqual([rows, rows])
  }, 120_000)

  test('is stopped after its process was killed, and resume finishes it with its options', async () => {
    const home = homeWith(listAt('kill.test', 300))
    const running = startEv(args('--only', 'deliverable', '--no-header', ...SLOW), { home })
    await untilProbed(simulator, 'mx.kill.test', 10)
    expect(await only(home)).toMatchObject({ state: 'processing', total: 300 })
    running.child.kill('SIGKILL')
    await running.ended
    const stopped = await only(home)
    expect(stopped).toMatchObject({ state: 'stopped', written_at: null })
    const shown = await jobs(home, 'show', stopped.job_id)
    expect(shown.stdout).toContain(
      `stopped; to continue it, run "ev jobs resume ${stopped.job_id}"`,
    )
    const resumed = await runEv(
      ['jobs', 'resume', stopped.job_id, '--data-dir', 'data', ...simulatorFlags(simulator)],
      { home },
    )
    expect(resumed.code, resumed.stderr).toBe(0)
    expect(await only(home)).toMatchObject({ state: 'completed', done: 300 })
    const lines = readFileSync(join(home, 'out.csv'), 'utf8').trimEnd().split('\n')
    const kept = lines.filter(line => /^(user|gone)/.test(line))
    expect(kept.every(line => line.includes(',deliverable,'))).toBe(true)
    expect(kept).toHaveLength(300 - GONE)
  })

  test('cannot be deleted until it is stopped, then with its copy of stdin', async () => {
    const home = emptyFolder()
    const running = startEv(
      [
        'bulk',
        '-',
        '-o',
        'out.csv',
        '--data-dir',
        'data',
        ...simulatorFlags(simulator),
        ...SLOW,
        '--cache',
        'off',
      ],
      { home, stdin: listAt('delete.test', 200) },
    )
    await untilProbed(simulator, 'mx.delete.test', 10)
    const { job_id, list } = await only(home)
    expect(list).toBe('stdin')
    const refused = await jobs(home, 'delete', job_id, '--yes')
    expect(refused.code).toBe(74)
    expectSentence(refused, /Another ev process is working on job .* ev jobs cancel /)
    running.child.kill('SIGKILL')
    await running.ended
    expect(readdirSync(join(home, 'data/stdin'))).toHaveLength(1)
    expect(await jobs(home, 'delete', job_id, '--yes')).toMatchObject({ code: 0 })
    expect(readdirSync(join(home, 'data/stdin'))).toEqual([])
    expect(readFileSync(join(home, 'data/ev.sqlite')).includes('@delete.test')).toBe(false)
  })
})

const POLITE = { behavior: 'polite' } as const
const SCENARIO: Scenario = {
  roundTripMs: 20,
  ...withOwnHosts({
    'kill.test': POLITE,
    'delete.test': POLITE,
    'grey.test': { behavior: 'greylist', seconds: 300 },
  }),
}

/** Every tenth address is unknown. */
const GONE = 30
