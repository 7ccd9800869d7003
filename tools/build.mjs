// Builds dist/ from src/: generates the client types, compiles, bundles large packages and copies the
// data files into a temporary folder, then swaps it for dist/, so that a running ev always finds a
// complete build. Types are not checked: `npm run types` does that, and it takes as long as the rest.
// --if-changed skips the build if dist/ is newer than all of its sources: npm runs `prepare` not only
// for `npm ci`, but also for the first `npx ev` and for `npm install /path/to/ev`.
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { buildDocs } from './docs/build-docs.mjs'
import { bundleDependencies } from './pack/dependencies.mjs'
import { bundleProgram } from './pack/program.mjs'

/** Files of libraries that pages load, by the name in dist/vendor/. */
const VENDOR_FILES = {
  'htmx.js': 'htmx.org/dist/htmx.min.js',
  'htmx.LICENSE.txt': 'htmx.org/LICENSE',
  'uplot.js': 'uplot/dist/uPlot.iife.min.js',
  'uplot.css': 'uplot/dist/uPlot.min.css',
  'uplot.LICENSE.txt': 'uplot/LICENSE',
  'minisearch.js': 'minisearch/dist/es/index.js',
  'minisearch.LICENSE.txt': 'minisearch/LICENSE.txt',
}

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
if (process.argv.includes('--if-changed') && !isStale()) process.exit()
await import('./client-types.mjs')

const tsc = join(
  dirname(createRequire(import.meta.url).resolve('typescript/package.json')),
  'bin/tsc',
)
const [dist, output, old] = ['dist', `.dist-${process.pid}`, `.dist-${process.pid}.old`].map(name =>
  join(root, name),
)
process.on('exit', () => {
  for (const folder of [output, old]) rmSync(folder, { recursive: true, force: true })
})
const compiled = spawnSync(
  process.execPath,
  [tsc, '-p', 'tsconfig.build.json', '--noCheck', '--outDir', output],
  { cwd: root, stdio: 'inherit' },
)
if (compiled.status !== 0) process.exit(compiled.status ?? 1)
await bundleDependencies(root, output)
await bundleProgram(output, output, { 'program/main': 'cli/main' })
cpSync(join(root, 'src/simulator/example.json'), join(output, 'simulator/example.json'))
const browser = join(root, 'src/dashboard/browser')
cpSync(browser, join(output, 'dashboard/browser'), {
  recursive: true,
  filter: name => !name.endsWith('.json') && name !== join(browser, 'css'),
})
const { joinStyles, STYLE } = await import(
  pathToFileURL(join(output, 'dashboard/join-styles.js')).href
)
writeFileSync(join(output, 'dashboard/browser', STYLE), joinStyles(browser))
const lists = join(root, 'src/engine/address/lists')
if (existsSync(lists)) cpSync(lists, join(output, 'engine/address/lists'), { recursive: true })
cpSync(
  join(root, 'src/accounts/people/common-passwords.bin'),
  join(output, 'accounts/people/common-passwords.bin'),
)
mkdirSync(join(output, 'vendor'))
for (const [name, source] of Object.entries(VENDOR_FILES)) {
  cpSync(join(root, 'node_modules', source), join(output, 'vendor', name))
}
buildDocs(root, join(output, 'docs'), join(output, 'vendor'))
if (existsSync(dist)) renameSync(dist, old)
renameSync(output, dist)

function isStale() {
  // The folder of the last files that a build copies.
  const last = join(root, 'dist/vendor')
  if (!existsSync(last)) return true
  const builtAt = statSync(last).ctimeMs
  const sources = ['package.json', 'tsconfig.json', 'tsconfig.build.json']
  for (const folder of ['src', 'tools', 'docs', 'clients/python']) {
    const names = readdirSync(join(root, folder), { recursive: true })
    sources.push(folder, ...names.map(name => join(folder, name)))
  }
  return sources.some(name => statSync(join(root, name)).mtimeMs > builtAt)
}
