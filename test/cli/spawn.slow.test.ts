import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ensureSetting } from '../../src/cluster/cluster-settings.ts'
import { openDatabase } from '../../src/db/database.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { homeWith } from '../support/cli-webhooks.ts'
import { emptyDatabase } from '../support/database.ts'
import { emptyFolder, runEv, simulatorFlags, startEv } from '../support/ev-process.ts'
import { tempPostgres } from '../support/postgres-pool.ts'

// Runs each command once through the launcher; `run` tests their behavior in process.

const DATA = ['--data-dir', 'data'] as const

test.each([
  ['verify', ['verify', 'valid@x.example', '--sandbox'], 0],
  ['bulk', ['bulk', 'list.csv', '-o', 'out.csv', '--sandbox', ...DATA], 0],
  ['bulk from stdin', ['bulk', '-', '-o', '-', '--sandbox', ...DATA], 0],
  ['jobs', ['jobs', ...DATA], 0],
  ['config', ['config'], 0],
  ['config as JSON', ['config', '--json'], 0],
  ['keys', ['keys', ...DATA], 66],
  ['accounts', ['accounts', 'create', '--name', 'Shop', ...DATA], 0],
  ['webhooks', ['webhooks', ...DATA], 66],
  ['backup', ['backup', 'copy.sqlite', ...DATA], 66],
  ['purge', ['purge', ...DATA], 0],
  ['completion', ['completion', 'bash'], 0],
] as const)('ev %s', async (_, args, code) => {
  const home = emptyFolder()
  writeFileSync(join(home, 'list.csv'), 'email\nvalid@x.example\n')
  const ran = await runEv(args, { home, stdin: 'email\nvalid@x.example\n' })
  expect(ran.code, ran.stderr).toBe(code)
  if (code === 0) expect(ran.stdout + ran.stderr).not.toBe('')
  else expect(ran.stderr).toMatch(/^error: /)
})

test.each([
  ['serve', ['serve', '--listen', '127.0.0.1:0', ...DATA], 'API documentation:', 'stderr'],
  ['simulate', ['simulate'], 'ann@polite.test\n', 'stdout'],
  ['webhooks listen', ['webhooks', 'listen', '--port', '0', ...DATA], '\n\n', 'stderr'],
] as const)('ev %s until SIGTERM', async (_, args, text, stream) => {
  const running = startEv(args, { home: await homeWith('acc_a') })
  await running.printed(text, stream)
  running.child.kill('SIGTERM')
  expect(await running.ended).toMatchObject({ code: 0, signal: null })
})

test('ev doctor', async () => {
  const simulator = await startSimulator({ domains: {}, hosts: {} })
  onTestFinished(() => simulator.close())
  const args = ['doctor', '--json', '--ask', '127.0.0.1', ...simulatorFlags(simulator), ...DATA]
  const ran = await runEv(args, { home: emptyFolder() })
  const { ok, checks } = JSON.parse(ran.stdout)
  expect(ran.code, ran.stderr).toBe(ok ? 0 : 1)
  expect(checks.length).toBeGreaterThan(3)
})

test('ev migrate', async () => {
  const home = await homeWith('acc_a')
  const environment = { EV_DATABASE: await emptyDatabase() }
  const ran = await runEv(['migrate', '--from', 'data', '--json'], { home, environment })
  expect(ran.code, ran.stderr).toBe(0)
  expect(JSON.stringify(JSON.parse(ran.stdout))).toContain('"account":1')
})

test('ev worker until SIGTERM', async () => {
  const url = await tempPostgres()
  const database = await openDatabase(url, systemClock)
  await ensureSetting(database, 'base-url', 'https://ev.example')
  await database.close()
  const environment = { EV_DATABASE: url, EV_SECRET: 'x'.repeat(32) }
  const running = startEv(['worker', ...DATA], { home: emptyFolder(), environment })
  await running.printed('"started"', 'stderr')
  running.child.kill('SIGTERM')
  expect(await running.ended).toMatchObject({ code: 0, signal: null })
})
