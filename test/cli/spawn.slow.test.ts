import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { homeWith } from '../support/cli-webhooks.ts'
import { emptyFolder, runEv, startEv } from '../support/ev-process.ts'

// Each command once, by the launcher: what it does is tested in process, by `run`.

const DATA = ['--data-dir', 'data'] as const

test.each([
  ['verify', ['verify', 'valid@x.example', '--sandbox'], 0],
  ['bulk', ['bulk', 'list.csv', '-o', 'out.csv', '--sandbox', ...DATA], 0],
  ['bulk from stdin', ['bulk', '-', '-o', '-', '--sandbox', ...DATA], 0],
  ['jobs', ['jobs', ...DATA], 0],
  ['config', ['config'], 0],
  ['keys', ['keys', ...DATA], 66],
  ['accounts', ['accounts', 'create', '--name', 'Shop', ...DATA], 0],
  ['webhooks', ['webhooks', ...DATA], 66],
  ['backup', ['backup', 'copy.sqlite', ...DATA], 66],
  ['migrate', ['migrate', '--from', 'data'], 64],
  ['purge', ['purge', ...DATA], 0],
  ['completion', ['completion', 'bash'], 0],
  ['doctor', ['doctor', '--ask', 'no host'], 64],
  ['worker', ['worker', ...DATA], 78],
] as const)('ev %s', { timeout: 60_000 }, async (_, args, code) => {
  const home = emptyFolder()
  writeFileSync(join(home, 'list.csv'), 'email\nvalid@x.example\n')
  const ran = await runEv(args, { home, stdin: 'email\nvalid@x.example\n' })
  expect(ran.code, ran.stderr).toBe(code)
  if (code === 0) expect(ran.stdout + ran.stderr).not.toBe('')
  else expect(ran.stderr).toMatch(/^ev: /)
})

test.each([
  ['serve', ['serve', '--listen', '127.0.0.1:0', ...DATA], 'All paths:', 'stderr'],
  ['world', ['world'], 'ann@polite.test\n', 'stdout'],
  ['webhooks listen', ['webhooks', 'listen', '--port', '0', ...DATA], '\n\n', 'stderr'],
] as const)('ev %s until SIGTERM', { timeout: 60_000 }, async (_, args, text, stream) => {
  const running = startEv(args, { home: await homeWith('acc_a') })
  await running.printed(text, stream)
  running.child.kill('SIGTERM')
  expect(await running.ended).toMatchObject({ code: 0, signal: null })
})
