import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { EV, emptyFolder, type startEv } from '../support/ev-process.ts'

const _SMALL = {
  mailboxes: ['ann'],
  domains: { 'a.test': { mx: [[10, 'mx.a.test']] } },
  hosts: { 'mx.a.test': { temper: 'polite' } },
}

function _homeWith(scenario: unknown): string {
  const home = emptyFolder()
  writeFileSync(join(home, 'world.json'), JSON.stringify(scenario))
  return home
}

/** What `ev world --json` said first. */
async function _whereabouts(running: ReturnType<typeof startEv>) {
  const said = new Promise<string>(resolve => {
    let heard = ''
    running.child.stdout?.on('data', (text: string) => {
      heard += text
      if (heard.includes('\n')) resolve(heard.slice(0, heard.indexOf('\n')))
    })
  })
  return JSON.parse(await Promise.race([said, running.ended.then(({ stderr }) => stderr)]))
}

// Each test waits for processes of its own, so they run side by side.
describe.concurrent('ev world', () => {
  test('does not end where stdin is nobody’s', async () => {
    const child = spawn(process.execPath, [EV, 'world', '--json'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    try {
      const [bytes] = await once(child.stdout, 'data')
      const { smtpPort, addresses } = JSON.parse(String(bytes).split('\n')[0] ?? '')
      // It still greets when the end of /dev/null has long been read.
      const [greeting] = await once(connect(smtpPort, addresses['mx.polite.test'][0]), 'data')
      expect(String(greeting)).toMatch(/^220 mx\.polite\.test/)
      child.kill('SIGTERM')
      expect(await once(child, 'exit')).toEqual([0, null])
    } finally {
      child.kill('SIGKILL')
    }
  })
})
