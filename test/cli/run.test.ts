import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { emptyFolder, runEv, startEv } from '../support/cli.ts'

const CLI = join(import.meta.dirname, '../../src/cli')
/** The files that connect the command line to its process. */
const PROCESS_FILES = ['main.ts', 'process-context.ts']
const TAKEN =
  /(?<!`)\bprocess\.(?:stdin|stdout|stderr|env|on|off|once|exit|exitCode|argv|cwd|kill)\b|\bsystem(?:Clock|Random)\b/

describe('the sources of the command line', () => {
  test('use the process only through the context', () => {
    const files = readdirSync(CLI, { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.ts') && !PROCESS_FILES.includes(name))
      .filter(name => TAKEN.test(readFileSync(join(CLI, name), 'utf8')))
    expect(files).toEqual([])
  })
})

describe('a run in this process', () => {
  test('writes help to the streams of its context, 80 columns wide by default', async () => {
    const { code, stdout, stderr } = await runEv(['--help'], { home: emptyFolder() })
    expect([code, stderr]).toEqual([0, ''])
    expect(Math.max(...stdout.split('\n').map(line => line.length))).toBeLessThanOrEqual(80)
  })

  test('reads the environment and the folder of its context, not of the process', async () => {
    const home = emptyFolder()
    const environment = { EV_HELO: 'probe.example.com' }
    const { stdout } = await runEv(['config', '--json'], { home, environment })
    const { settings } = JSON.parse(stdout)
    expect(settings.helo).toEqual({ value: 'probe.example.com', from: 'EV_HELO' })
    expect(settings['data-dir'].value).toBe(join(home, '.local/share/ev'))
  })

  test('exits with 99 if an offline run uses the network', async () => {
    const ran = await runEv(['verify', 'ann@good.test', '--special-domains'], {
      home: emptyFolder(),
      offline: true,
    })
    expect(ran.code).toBe(99)
    expect(ran.stderr).toMatch(/^no-network: /m)
  })

  test('prints no colors if stdout is not a terminal', async () => {
    const args = ['verify', 'valid@x.example', '--sandbox']
    const { stdout } = await runEv(args, { home: emptyFolder(), offline: true })
    expect(stdout).toMatch(/^✔ valid@x\.example is deliverable \(SIMULATED\)\n/)
  })

  // timeout(1) signals the process and its group.
  test('stops a service in order at a SIGTERM that arrives twice', async () => {
    const home = emptyFolder()
    const running = startEv(['serve', '--data-dir', 'data', '--listen', '127.0.0.1:0'], { home })
    await running.printed('API documentation:', 'stderr')
    running.signal('SIGTERM')
    running.signal('SIGTERM')
    expect(await running.ended).toMatchObject({ code: 0 })
    expect(running.stderr).not.toContain('forced exit')
  })

  test('reports usage errors with a message and a code', async () => {
    const { code, stdout, stderr } = await runEv(['bulk'], { home: emptyFolder() })
    expect([code, stdout, stderr]).toEqual([64, '', expect.stringContaining('"file" is missing')])
  })
})
