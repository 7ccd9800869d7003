// Writes the npm packages to packages/, or to the folder that is the argument, from one build: the
// engine, the client, and the product that depends on both. Each contains only its own files and
// names only its own dependencies. Beside each folder it writes the same as a .tgz file, and prints
// the command that installs it, and a bill of materials of the product (CycloneDX).
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, extname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleModules, bundleTypes } from './pack/bundle.mjs'
import { FOLDER as BUNDLED } from './pack/dependencies.mjs'
import { closureOf, importsOf, packagesOf } from './pack/modules.mjs'
import { bundleProgram } from './pack/program.mjs'
import { writeSbom } from './pack/sbom.mjs'

const PRODUCT = 'evmail'
const ENGINE = 'evmail-engine'
const CLIENT = 'evmail-client'

/** The command line, and the programs that it starts in processes and threads of their own. */
const PROGRAMS = {
  'program/main': 'cli/main',
  'simulator/main': 'simulator/main',
  'simulator/tarpit': 'simulator/tarpit',
  'maintenance/copy-worker': 'maintenance/copy-worker',
}

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const dist = join(root, 'dist')
const packages = resolve(process.argv[2] ?? join(root, 'packages'))
const manifest = readJson(join(root, 'package.json'))

run('tools/build.mjs', '--if-changed')
rmSync(packages, { recursive: true, force: true })
const engineFiles = modulesOf('index')
const clientFiles = modulesOf('client/client')
const startFiles = new Set(
  [...closureOf(join(dist, 'cli/main.js'), { onlyStatic: true })].map(sourceOf),
)
const productFiles = readdirSync(dist, { recursive: true })
  .filter(name => name.endsWith('.js') && !isServed(name))
  .map(name => join(dist, name))
  .filter(file => !engineFiles.has(file) && !clientFiles.has(file))
await packEngine()
await packClient()
await packProduct()
writeTarballs()
writeSbom(root, join(packages, `${PRODUCT}-${manifest.version}.cdx.json`))

/**
 * Bundles a module with its imports, because loading one file takes half the time of a hundred. The
 * product imports some modules too: each has an entry in dist/internal.
 */
async function packModules(name, entry, files) {
  const folder = startPackage(name)
  const entries = { index: sourceOf(join(dist, `${entry}.js`)) }
  for (const file of files) {
    if (importedFiles().has(file)) entries[internalName(file)] = sourceOf(file)
  }
  await bundleModules(entries, join(folder, 'dist'), file => startFiles.has(file))
  await bundleTypes(join(dist, `${entry}.d.ts`), join(folder, 'dist/index.d.ts'))
  writeRequired(folder, 'index')
  return folder
}

async function packEngine() {
  const folder = await packModules(ENGINE, 'index', engineFiles)
  cpSync(join(dist, 'engine/address/lists'), join(folder, 'dist/lists'), { recursive: true })
  finishPackage(folder)
}

/**
 * Writes the entry for `require()`, which loads the same module, and its types: TypeScript with
 * `module: node16` does not let CommonJS import the types of ES modules.
 */
function writeRequired(folder, entry) {
  const file = join(folder, 'dist', entry)
  writeFileSync(`${file}.cjs`, `module.exports = require('./${basename(entry)}.js')\n`)
  cpSync(`${file}.d.ts`, `${file}.d.cts`)
}

async function packClient() {
  finishPackage(await packModules(CLIENT, 'client/client', clientFiles))
}

/** All other modules. Modules of the engine and the client are imported from those packages. */
async function packProduct() {
  const folder = startPackage(PRODUCT)
  cpSync(join(root, 'bin'), join(folder, 'bin'), { recursive: true })
  for (const name of readdirSync(dist, { recursive: true }).filter(isData)) {
    if (extname(name) !== '') cpSync(join(dist, name), join(folder, 'dist', name))
  }
  cpSync(join(dist, BUNDLED), join(folder, 'dist', BUNDLED), { recursive: true })
  await bundleProgram(dist, join(folder, 'dist'), PROGRAMS, otherPackage)
  for (const [name, from] of Object.entries({ index: ENGINE, 'client/client': CLIENT })) {
    mkdirSync(dirname(join(folder, 'dist', name)), { recursive: true })
    for (const ending of ['js', 'd.ts']) {
      writeFileSync(join(folder, 'dist', `${name}.${ending}`), `export * from '${from}'\n`)
    }
    writeRequired(folder, name)
  }
  finishPackage(folder, { [ENGINE]: manifest.version, [CLIENT]: manifest.version })
}

/** The product needs the files of the engine and the client until they are in the registry. */
function writeTarballs() {
  const names = [ENGINE, CLIENT, PRODUCT]
  const { status, stderr } = spawnSync(
    'npm',
    ['pack', '--pack-destination', packages, ...names.map(name => join(packages, name))],
    { encoding: 'utf8', shell: process.platform === 'win32' },
  )
  if (status !== 0) throw new Error(`npm pack failed: ${stderr}`)
  const file = name => relative('', join(packages, `${name}-${manifest.version}.tgz`))
  for (const name of names) {
    const needed = name === PRODUCT ? names : [name]
    process.stdout.write(`npm install ${needed.map(file).join(' ')}\n`)
  }
}

/** The compiled modules that a module imports, without the packages that the build contains. */
function modulesOf(entry) {
  const isOwn = file => dirname(file) !== join(dist, BUNDLED)
  return new Set([...closureOf(join(dist, `${entry}.js`))].filter(isOwn))
}

/** The compiled modules that those of the product import. */
function importedFiles() {
  return new Set(
    productFiles.flatMap(file =>
      importsOf(readFileSync(file, 'utf8')).map(({ specifier }) => join(dirname(file), specifier)),
    ),
  )
}

/** Returns the specifier for a module of another package; null for one of the product. */
function otherPackage(file) {
  const name = engineFiles.has(file) ? ENGINE : clientFiles.has(file) ? CLIENT : null
  return name && `${name}/${internalName(file)}.js`
}

function internalName(file) {
  return `internal/${relative(dist, file).replace(/\.js$/, '')}`
}

function sourceOf(file) {
  return join(root, 'src', relative(dist, file).replace(/js$/, 'ts'))
}

/** Whether a file is served to browsers as it is. */
function isServed(name) {
  return /^(vendor|dashboard\/browser)\//.test(name)
}

/** Whether a file that is not a module is needed at run time. */
function isData(name) {
  return isServed(name) || ['simulator/example.json', 'docs/pages.json'].includes(name)
}

function startPackage(name) {
  const folder = join(packages, name)
  mkdirSync(folder, { recursive: true })
  cpSync(join(root, 'tools/packages', name, 'README.md'), join(folder, 'README.md'))
  for (const file of ['LICENSE', 'CHANGELOG.md']) cpSync(join(root, file), join(folder, file))
  return folder
}

/**
 * Writes package.json, with the packages that the modules load as dependencies; `others` are the
 * versions of packages of this repository. Optional dependencies are those of the product.
 */
function finishPackage(folder, others = {}) {
  const own = readJson(join(root, 'tools/packages', relative(packages, folder), 'package.json'))
  const { version, license, author, peerDependencies, peerDependenciesMeta } = manifest
  const loaded = readdirSync(join(folder, 'dist'), { recursive: true })
    .filter(name => name.endsWith('.js') && !isServed(name))
    .flatMap(name => packagesOf(readFileSync(join(folder, 'dist', name), 'utf8')))
  const all = [...new Set(loaded)].sort()
  const required = all.filter(name => !(name in peerDependencies))
  const dependencies = required.map(name => [name, others[name] ?? versionOf(name)])
  const complete = {
    name: own.name,
    version,
    ...own,
    license,
    author,
    ...repository(),
    dependencies: Object.fromEntries(dependencies),
    ...(all.length > required.length ? { peerDependencies, peerDependenciesMeta } : {}),
  }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(complete, null, 2)}\n`)
}

function versionOf(name) {
  const version = manifest.dependencies[name]
  if (version === undefined) throw new Error(`package.json has no dependency ${name}.`)
  return version
}

/** The repository is where this copy comes from: npm compares it with the provenance. */
function repository() {
  const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env
  const remote = GITHUB_REPOSITORY ? `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}.git` : remoteUrl()
  // The form of the registry: git+https://github.com/owner/name.git
  const url = remote.replace(/^git@([^:]+):/, 'ssh://git@$1/').replace(/^(?=https?:|ssh:)/, 'git+')
  return url === '' ? {} : { repository: { type: 'git', url } }
}

/** The address of the remote `origin`; empty if there is none or it is a folder. */
function remoteUrl() {
  const { stdout } = spawnSync('git', ['remote', 'get-url', 'origin'], {
    cwd: root,
    encoding: 'utf8',
  })
  const url = (stdout ?? '').trim()
  return /^(?:[a-z+]+:\/\/|git@)/.test(url) ? url : ''
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}

function run(...args) {
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
