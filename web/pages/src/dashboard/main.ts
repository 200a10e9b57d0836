import { mount } from 'svelte';
import '../shared/look.css';
import './dashboard.css';
import App from './App.svelte';
import { followLinks } from './place.svelte';

const target = document.getElementById('app');
if (target) {
  followLinks();
  mount(App, { target });
}
