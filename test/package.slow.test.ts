import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, inject, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

const dist = join(ROOT, 'dist')

describe('the build', () => {
  beforeAll(() => expect(inject('buildFault')).toBe(''))

  test('is imported without side effects: no files, handles or output, and the process exits', () => {
    const { status, stdout, stderr } = run(['--input-type=module', '-e', WATCHED_IMPORT], dist)
    expect(stderr).toBe('')
    expect(JSON.parse(stdout)).toEqual({ handles: [], opened: [], globals: [], listeners: [] })
    expect(status).toBe(0)
  })

  test('exports what its types declare', () => {
    const script = `import * as ev from '${dist}/index.js'; console.log(Object.keys(ev).join())`
    const { stdout } = run(['--input-type=module', '-e', script])
    expect(stdout.trim()).toBe('EvError,classOf,createEngine,decide,presentResult')
  })

  test('lets the process exit after an engine is closed', () => {
    const script = `
      import { createEngine } from '${dist}/index.js'
      const engine = createEngine({ dns: ['127.0.0.1:9'], deadlineMs: 300 })
      const { verdict } = await engine.verify('ann@example.com')
      await engine.close()
      console.log(verdict.reason)`
    const { status, stdout } = run(['--input-type=module', '-e', script])
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'dns_error\n' })
  })

  test('names only files that the build creates', () => {
    const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const targets = [manifest.exports['.'].types, manifest.exports['.'].default]
    for (const target of targets) {
      expect(target).toMatch(/^\.\/dist\//)
      expect(existsSync(join(dist, target.replace('./dist/', ''))), target).toBe(true)
    }
    expect(existsSync(join(ROOT, manifest.exports['./package.json']))).toBe(true)
    for (const file of Object.values<string>(manifest.bin)) {
      expect(existsSync(join(ROOT, file)), file).toBe(true)
    }
    expect(manifest.files).toEqual(expect.arrayContaining(['bin', 'dist']))
  })
})

/**
 * Imports the package and reports access to files, globals, listeners and handles; reading modules
 * is allowed.
 */
const WATCHED_IMPORT = `
  import fs from 'node:fs'
  import { syncBuiltinESMExports } from 'node:module'
  const opened = []
  for (const name of ['open', 'openSync', 'readFile', 'readFileSync', 'readdirSync', 'createReadStream', 'writeFileSync']) {
    const real = fs[name]
    fs[name] = (...args) => {
      if (!/\\.(c|m)?js$|package\\.json$/.test(String(args[0]))) opened.push(name + ' ' + args[0])
      return real.apply(fs, args)
    }
  }
  syncBuiltinESMExports()
  const before = new Set(Object.getOwnPropertyNames(globalThis))
  const countListeners = () => process.eventNames().map(name => String(name) + process.listenerCount(name))
  const listening = countListeners()
  await import(process.argv[1] + '/index.js')
  const allowedHandles = ['PipeWrap', 'TTYWrap']
  console.log(JSON.stringify({
    handles: process.getActiveResourcesInfo().filter(name => !allowedHandles.includes(name)),
    opened,
    globals: Object.getOwnPropertyNames(globalThis).filter(name => !before.has(name)),
    listeners: countListeners().filter(name => !listening.includes(name)),
  }))`

function run(given: readonly string[], ...more: string[]) {
  const args = [...given, ...more]
  return spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8', timeout: 120_000 })
}
