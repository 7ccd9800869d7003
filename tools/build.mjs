// Builds dist/ from src/: generates the client types, compiles and copies the data files into a
// temporary folder, then swaps it for dist/, so that a running ev always finds a complete build.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

await import('./client-types.mjs')

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
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
  [tsc, '-p', 'tsconfig.build.json', '--outDir', output],
  {
    cwd: root,
    stdio: 'inherit',
  },
)
if (compiled.status !== 0) process.exit(compiled.status ?? 1)
cpSync(join(root, 'src/simulator/example.json'), join(output, 'simulator/example.json'))
cpSync(join(root, 'src/dashboard/browser'), join(output, 'dashboard/browser'), {
  recursive: true,
  filter: name => !name.endsWith('.json'),
})
const lists = join(root, 'src/engine/address/lists')
if (existsSync(lists)) cpSync(lists, join(output, 'engine/address/lists'), { recursive: true })
if (existsSync(dist)) renameSync(dist, old)
renameSync(output, dist)
