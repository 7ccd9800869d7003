import { execFileSync, spawnSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ledgerOf, submitOne, untilFinished } from '../support/chaos.ts'
import { emptyDatabase, tempFolder } from '../support/database.ts'
import { scenarioOf } from '../support/list-simulator.ts'
import { PROGRAM, ProcessCluster } from '../support/process-cluster.ts'
import { waitUntil } from '../support/wait.ts'

/**
 * The last minor version, beside which this one may run (docs/upgrades.md). Until a version follows
 * 0.2.0, the commit before the last migration stands for it.
 */
const PREVIOUS = process.env.EV_PREVIOUS ?? '86c75cda'

const ROOT = join(import.meta.dirname, '../..')
const LIST = { rows: 1_000, domains: 20 }
const SESSIONS_MAX = 2
/** Builds the previous version with the packages of this one, and returns its program. */
function buildPrevious(): string {
  const folder = join(tempFolder(), 'ev')
  const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, stdio: 'pipe' })
  git('worktree', 'add', '--detach', folder, PREVIOUS)
  onTestFinished(() => void git('worktree', 'remove', '--force', folder))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  execFileSync(process.execPath, ['tools/build.mjs'], { cwd: folder, stdio: 'pipe' })
  return join(folder, 'bin/ev.js')
}

/** A copy without its history, such as that of a shallow clone, cannot build an earlier version. */
const hasPrevious = () =>
  spawnSync('git', ['cat-file', '-e', `${PREVIOUS}^{commit}`], { cwd: ROOT }).status === 0

test.skipIf(!hasPrevious())(
  'processes of the previous version and of this one work on the same lists, and lose nothing',
  async () => {
    const previous = buildPrevious()
    const cluster = await ProcessCluster.open(await emptyDatabase(), {
      scenario: scenarioOf(LIST, 30),
      programOf: name => (name.startsWith('old') ? previous : PROGRAM),
      serverArgs: ['--plan', 'enterprise', '--webhook-allow-ranges', '127.0.0.0/8'],
      args: [
        '--sessions-per-operator',
        `${SESSIONS_MAX}`,
        '--sessions-per-second',
        '2',
        '--recipients-per-session',
        '5',
      ],
    })
    try {
      const oldServer = await cluster.start('serve', 'old-server')
      const oldWorker = await cluster.start('worker', 'old-worker')
      // Servers first, one at a time, as docs/upgrades.md says.
      const newServer = await cluster.start('serve', 'new-server')
      await cluster.start('worker', 'new-worker')
      const jobs = [
        await submitOne(cluster, oldServer, LIST),
        await submitOne(cluster, newServer, LIST),
      ]
      const untilDone = (share: number) =>
        waitUntil(async () => {
          const [row] = await cluster.ask<{ done: string }>('select sum(done) as done from job')
          return Number(row?.done) >= share * LIST.rows * jobs.length
        })
      await untilDone(0.2)
      await oldWorker.end('SIGKILL')
      await untilDone(0.5)
      expect(await oldServer.end('SIGTERM')).toBe(0)
      await untilFinished(cluster, jobs)
      expect(await ledgerOf(cluster, { list: LIST })).toMatchObject({
        jobs: jobs.map(() => ({ state: 'completed', done: LIST.rows, total: LIST.rows })),
        wrongRows: 0,
        history: jobs.length * LIST.rows,
        events: jobs.length,
        creditsHeld: 0,
        sessionsPeak: SESSIONS_MAX,
      })
    } finally {
      expect(await cluster.close()).toEqual([])
    }
  },
)
