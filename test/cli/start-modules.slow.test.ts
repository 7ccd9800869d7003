import { spawnSync } from 'node:child_process'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { emptyFolder } from '../support/cli.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Prints the URLs of all modules at exit, each in a line of its own. */
const RECORDER = `
import { registerHooks } from 'node:module'
const loaded = []
registerHooks({
  load(url, context, next) {
    if (!url.startsWith('node:')) loaded.push(url)
    return next(url, context)
  },
})
process.on('exit', () => process.stderr.write(loaded.map(url => 'loaded ' + url + '\\n').join('')))
`

/** Returns the modules that a command loads: packages by their name, bundled or not, and files. */
function modulesOf(...args: readonly string[]) {
  const folder = emptyFolder()
  const recorder = join(folder, 'recorder.mjs')
  writeFileSync(recorder, RECORDER)
  const command = [join(ROOT, 'bin/ev.js'), ...args]
  const { stderr, status } = spawnSync(
    process.execPath,
    ['--import', pathToFileURL(recorder).href, ...command],
    { encoding: 'utf8', env: { HOME: folder, PATH: process.env.PATH } },
  )
  const urls = [...stderr.matchAll(/^loaded (.*)$/gm)].map(([, url = '']) => url)
  const packages = new Set(urls.flatMap(url => PACKAGE.exec(url)?.slice(1).filter(Boolean) ?? []))
  const bytes = urls.reduce((sum, url) => sum + statSync(new URL(url)).size, 0)
  return {
    status,
    stderr,
    count: urls.length,
    kilobytes: bytes / 1_000,
    packages: [...packages].sort(),
  }
}

/** A package in node_modules or in dist/bundled, where `shared-` begins its shared parts. */
const PACKAGE = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\/|\/dist\/bundled\/(?!shared-)([\w-]+)\.js$/

/** Commands whose file has their flags and what they print; what they work with is loaded later. */
const HELP_OF = [
  ...['verify', 'bulk', 'measure', 'serve', 'worker', 'doctor', 'config', 'lists'],
  ...['backup', 'restore', 'migrate', 'purge', 'mcp', 'simulate', 'version'],
]

/** The build has the modules of ev in few files, so what a start loads is also counted in bytes. */
const VERIFY = {
  packages: ['commander', 'dns-packet', 'lru-cache'],
  files: 55,
  kilobytes: 1_050,
}

const BULK = [
  ...['better-sqlite3', 'commander', 'csv-parse-sync', 'csv-stringify-sync', 'dns-packet'],
  ...['kysely', 'kysely-migration', 'lru-cache'],
]

describe('a command loads only what it runs:', () => {
  test.each([
    { args: ['--version'], expected: [], files: 3, kilobytes: 50 },
    { args: ['help'], expected: ['commander'], files: 6, kilobytes: 200 },
    ...HELP_OF.map(name => ({
      args: [name, '--help'],
      expected: ['commander'],
      files: 25,
      kilobytes: 300,
    })),
  ])('$args loads at most $files files, and of packages $expected', start => {
    const { status, stderr, count, kilobytes, packages } = modulesOf(...start.args)
    expect(status, stderr).toBe(0)
    expect(packages).toEqual(start.expected)
    expect(count).toBeLessThanOrEqual(start.files)
    expect(kilobytes).toBeLessThanOrEqual(start.kilobytes)
  })

  test('keys list on SQLite loads no web server and no driver of PostgreSQL', () => {
    const { packages } = modulesOf('keys', 'list')
    expect(packages).toContain('better-sqlite3')
    for (const name of ['pg', 'hono', 'zod', 'hono-zod-openapi', 'undici', 'nodemailer'])
      expect(packages).not.toContain(name)
  })

  test('verify loads the engine, but no database and no readers or writers of lists', () => {
    const loaded = modulesOf('verify', '--sandbox', 'valid@x.example')
    expect(loaded.status, loaded.stderr).toBe(0)
    expect(loaded.packages).toEqual(VERIFY.packages)
    expect(loaded.count).toBeLessThanOrEqual(VERIFY.files)
    expect(loaded.kilobytes).toBeLessThanOrEqual(VERIFY.kilobytes)
  })

  test('bulk loads packages for workbooks only for a workbook, and a spinner only on a terminal', () => {
    const list = join(emptyFolder(), 'list.csv')
    writeFileSync(list, 'email\nvalid@x.example\n')
    const { status, stderr, packages } = modulesOf('bulk', '--sandbox', list)
    expect(status, stderr).toBe(0)
    expect(packages).toEqual(BULK)
  })
})
