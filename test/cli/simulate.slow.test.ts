import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { EV } from '../support/ev-process.ts'

// Each test waits for its own processes, so the tests run concurrently.
describe.concurrent('ev simulate', () => {
  test('does not end if stdin is /dev/null', async () => {
    const child = spawn(process.execPath, [EV, 'simulate', '--json'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    try {
      const [bytes] = await once(child.stdout, 'data')
      const { smtpPort, addresses } = JSON.parse(String(bytes).split('\n')[0] ?? '')
      // It still accepts connections after it has read the end of /dev/null.
      const [greeting] = await once(connect(smtpPort, addresses['mx.polite.test'][0]), 'data')
      expect(String(greeting)).toMatch(/^220 mx\.polite\.test/)
      child.kill('SIGTERM')
      expect(await once(child, 'exit')).toEqual([0, null])
    } finally {
      child.kill('SIGKILL')
    }
  })
})
