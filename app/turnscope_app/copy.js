// A button that copies the address of what is on the screen, filters included.
export default function ({ parentElement, data }) {
  const button = parentElement.querySelector("button");
  const said = parentElement.querySelector("[role=status]");
  button.onclick = async () => {
    const address = window.location.href;
    try {
      await navigator.clipboard.writeText(address);
    } catch {
      // Without https the browser has no clipboard for pages: the old way still works.
      const field = document.createElement("textarea");
      field.value = address;
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
      button.focus();
    }
    said.textContent = data.copied;
    window.setTimeout(() => { said.textContent = ""; }, 2500);
  };
}
