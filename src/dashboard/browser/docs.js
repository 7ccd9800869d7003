// Renders the API reference with Swagger UI.

import { loadScript } from './app.js'

const reference = /** @type {HTMLElement} */ (document.querySelector('#reference'))

/** Swagger UI has its own class for dark colors. */
const system = matchMedia('(prefers-color-scheme: dark)')
function setTheme() {
  const { theme } = document.documentElement.dataset
  const isDark = theme === 'dark' || (theme === 'auto' && system.matches)
  document.documentElement.classList.toggle('dark-mode', isDark)
}
system.addEventListener('change', setTheme)
setTheme()

/** Replaces the link in the button of each operation: a button cannot contain a link. */
const withoutLinks = () => ({
  wrapComponents: {
    DeepLink:
      (/** @type {unknown} */ _, /** @type {any} */ { React }) =>
      (/** @type {{ text: string }} */ { text }) =>
        React.createElement('span', null, text),
  },
})

/** Names the fields that Swagger UI renders without a label. */
function nameFields() {
  for (const field of reference.querySelectorAll('select:not([aria-label])')) {
    const row = field.closest('[data-param-name]')
    field.setAttribute('aria-label', row?.getAttribute('data-param-name') ?? 'Server')
  }
}

await loadScript('./swagger-ui-bundle.js')
const { SwaggerUIBundle } = /** @type {any} */ (globalThis)
new MutationObserver(nameFields).observe(reference, { childList: true, subtree: true })
SwaggerUIBundle({
  ...{ url: reference.dataset.document, domNode: reference },
  ...{ deepLinking: true, validatorUrl: null, syntaxHighlight: false },
  plugins: [withoutLinks],
})
