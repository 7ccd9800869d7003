// The documentation: the search, and the language of the samples.

const input = /** @type {HTMLInputElement} */ (document.querySelector('.docs-search input'))
const found = /** @type {HTMLElement} */ (document.querySelector('.found'))
const status = /** @type {HTMLElement} */ (document.querySelector('search [role=status]'))
const pages = /** @type {HTMLElement} */ (document.querySelector('.side .pages'))

/** @typedef {{ title: string, url: string }} Found */
/** @typedef {{ search(text: string, options: object): Found[] }} Index */

const RESULTS_MAX = 12
/** A match in a title counts more; words may be incomplete, and long ones misspelled. */
const SEARCH = { boost: { title: 3 }, prefix: true, fuzzy: 0.15, combineWith: 'AND' }

let loading = /** @type {Promise<Index> | null} */ (null)

/** Loads the index at the first use of the search; tries again after a failure. */
function loadIndex() {
  loading ??= readIndex().catch(error => {
    loading = null
    throw error
  })
  return loading
}

async function readIndex() {
  const [{ default: MiniSearch }, answer] = await Promise.all([
    import(new URL('./minisearch.js', import.meta.url).href),
    fetch(input.dataset.index ?? ''),
  ])
  // The same options as in the build.
  return MiniSearch.loadJSON(await answer.text(), {
    fields: ['title', 'text'],
    storeFields: ['title', 'url'],
    idField: 'url',
  })
}

async function showResults() {
  const text = input.value.trim()
  const results = text === '' ? [] : (await loadIndex()).search(text, SEARCH)
  // The user may have typed on while the index was loaded.
  if (text !== input.value.trim()) return
  found.hidden = text === ''
  pages.hidden = text !== ''
  found.replaceChildren(...results.slice(0, RESULTS_MAX).map(resultItem))
  status.textContent = text === '' ? '' : describe(results.length)
  if (text !== '' && results.length === 0) found.append(noResult())
}

const describe = (/** @type {number} */ count) =>
  count === 0 ? 'No results' : `${count} ${count === 1 ? 'result' : 'results'}`

function resultItem(/** @type {Found} */ { title, url }) {
  const item = document.createElement('li')
  const link = Object.assign(document.createElement('a'), { href: url, textContent: title })
  item.append(link)
  return item
}

function noResult() {
  return Object.assign(document.createElement('li'), { textContent: 'No results' })
}

/** Enter opens the first result, arrow keys move between the field and the results. */
function moveBetween(/** @type {KeyboardEvent} */ event) {
  const stops = /** @type {HTMLElement[]} */ ([input, ...found.querySelectorAll('a')])
  const at = stops.indexOf(/** @type {HTMLElement} */ (document.activeElement))
  if (at < 0) return
  if (event.key === 'Enter' && at === 0) return stops[1]?.click()
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0
  if (step === 0) return
  event.preventDefault()
  stops[at + step]?.focus()
}

/** A slash moves the focus to the search, unless the user types elsewhere. */
function focusSearch(/** @type {KeyboardEvent} */ event) {
  const isTyping = event.target instanceof Element && event.target.matches('input, textarea')
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey) return
  event.preventDefault()
  input.focus()
}

/** On a phone, a link to a part of this page closes the menu that covers it. */
function closeMenu(/** @type {MouseEvent} */ { target }) {
  const side = document.querySelector('#side:popover-open')
  if (side instanceof HTMLElement && target instanceof Element && target.closest('#side a')) {
    side.hidePopover()
  }
}

const LANGUAGE_KEY = 'ev docs language'

/** Shows all samples in one language. */
function chooseLanguage(/** @type {string} */ language) {
  for (const choice of document.querySelectorAll('.samples input')) {
    if (choice instanceof HTMLInputElement && choice.value === language) choice.checked = true
  }
}

document.addEventListener('change', ({ target }) => {
  if (!(target instanceof HTMLInputElement) || !target.matches('.samples input')) return
  // Other samples may change their height: what the user looks at stays where it is.
  const { top } = target.getBoundingClientRect()
  chooseLanguage(target.value)
  scrollBy(0, target.getBoundingClientRect().top - top)
  localStorage.setItem(LANGUAGE_KEY, target.value)
})
chooseLanguage(localStorage.getItem(LANGUAGE_KEY) ?? '')
input.addEventListener('focus', () => void loadIndex().catch(() => undefined))
input.addEventListener('input', showResults)
document.addEventListener('keydown', moveBetween)
document.addEventListener('keydown', focusSearch)
document.addEventListener('click', closeMenu)
