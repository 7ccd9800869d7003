import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { emptyFolder, type Ran, runEv, simulatorFlags, startEv } from '../support/cli.ts'
import { startService } from '../support/cli-service.ts'
import { homeWith } from '../support/cli-webhooks.ts'
import { waitUntil } from '../support/wait.ts'

/** No server listens there: all but the last test are refused before it is contacted. */
const migrate = (home: string): Promise<Ran> =>
  runEv(['migrate', '--from', 'data', '--to', 'postgres://ev@127.0.0.1:1/ev'], { home })

const UNREACHABLE = /connection refused.* or choose another one with --to\.$/m

test('a missing database is refused', async () => {
  expect(await migrate(emptyFolder())).toMatchObject({
    code: 66,
    stderr: expect.stringMatching(/data\/ev\.sqlite/),
  })
})

test('nothing is copied while ev serve is running, and the lock is released', async () => {
  const home = await homeWith('Shop')
  const service = await startService(home)
  const refused = await migrate(home)
  expect([refused.code, refused.stderr]).toEqual([74, expect.stringContaining('"ev serve"')])
  await service.end('SIGTERM')
  expect((await migrate(home)).stderr).toMatch(UNREACHABLE)
  await (await startService(home)).end('SIGTERM')
})

test('nothing is copied while ev bulk is running', async () => {
  const simulator = await startSimulator({
    domains: { 'mute.test': { mx: [[10, 'mx.mute.test']] } },
    hosts: { 'mx.mute.test': { behavior: 'silent' } },
  })
  const home = emptyFolder()
  writeFileSync(join(home, 'list.csv'), 'ann@mute.test\n')
  const args = ['bulk', 'list.csv', '-o', 'out.csv', '--data-dir', 'data']
  const running = startEv([...args, ...simulatorFlags(simulator)], { home })
  await waitUntil(() => (simulator.counters().hosts['mx.mute.test']?.connections ?? 0) > 0)
  const refused = await migrate(home)
  expect([refused.code, refused.stderr]).toEqual([74, expect.stringContaining('"ev bulk"')])
  running.signal('SIGINT')
  await running.ended
  await simulator.close()
})

test('an unreachable target names the flag that sets it', async () => {
  const { code, stderr } = await migrate(await homeWith('Shop'))
  expect([code, stderr]).toEqual([74, expect.stringMatching(UNREACHABLE)])
})
