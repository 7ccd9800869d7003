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

/** Corrects the markup: a button cannot contain a link, and the page has a main element already. */
const withValidMarkup = (/** @type {any} */ { React }) => ({
  components: {
    ValidLayout: (/** @type {any} */ props) => {
      const Bounded = props.getComponent('BaseLayout')
      // The layout is the only child of its error boundary.
      const layout = Bounded.prototype.render.call({ props }).props.children
      return replaceMain(layout.type.prototype.render.call(layout), React)
    },
  },
  wrapComponents: {
    DeepLink:
      (/** @type {unknown} */ _, /** @type {any} */ { React }) =>
      (/** @type {{ text: string }} */ { text }) =>
        React.createElement('span', null, text),
  },
})

function replaceMain(/** @type {any} */ element, /** @type {any} */ React) {
  if (!React.isValidElement(element)) return element
  const { type, props } = element
  const children = React.Children.map(props.children, (/** @type {any} */ child) =>
    replaceMain(child, React),
  )
  if (type === 'main') return React.createElement('div', { id: props.id }, children)
  return React.cloneElement(element, {}, children)
}

/** Names the fields that Swagger UI renders without a label, and corrects the level of a heading. */
function completeMarkup() {
  for (const field of reference.querySelectorAll('select:not([aria-label])')) {
    const row = field.closest('[data-param-name]')
    field.setAttribute('aria-label', row?.getAttribute('data-param-name') ?? 'Server')
  }
  reference.querySelector('.models > h4')?.setAttribute('aria-level', '2')
}

await loadScript('./swagger-ui-bundle.js')
const { SwaggerUIBundle } = /** @type {any} */ (globalThis)
new MutationObserver(completeMarkup).observe(reference, { childList: true, subtree: true })
SwaggerUIBundle({
  url: reference.dataset.document,
  domNode: reference,
  deepLinking: true,
  layout: 'ValidLayout',
  validatorUrl: null,
  syntaxHighlight: false,
  plugins: [withValidMarkup],
})
